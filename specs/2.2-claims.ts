/** Section 2.2: the claims of the access token. */
import { mintAll } from '../engine/run/rules/mint-all.ts';
import { observed, type Probe } from '../engine/run/probe.ts';

export const probes: readonly Probe[] = [
  observed(
    ['2.2-iss', '2.2-aud', '2.2-sub', '2.2-sub-client', '2.2-iat', '2.2-exp', '2.2-scope', '2.2-tenant_id'],
    'the claims of every client',
    mintAll,
    'token',
  ),
];
