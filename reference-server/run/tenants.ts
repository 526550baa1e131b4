/** Tenant ids of the default provisioning, by role of their client. */
export const TENANTS = {
  primary: '7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01',
  secondTenant: '1b9e2c40-8a7d-4f13-b2c6-5e4d3c2b1a02',
  notOnboarded: '42f6d0aa-6c1b-4e8f-8d3e-9a7b5c3d1f03',
  scratch: 'c3a8e6f4-2d5b-47c9-a1e0-7f6d5b4c3a04',
} as const;
