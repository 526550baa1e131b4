/**
 * The TestRun of k6's operator (k6.io/v1alpha1), as far as the kit writes it. The schema below is the kit's own
 * excerpt of the operator's published CRD: same names, types and required members; anything else is refused.
 */

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

export interface TestRun {
  readonly apiVersion: 'k6.io/v1alpha1';
  readonly kind: 'TestRun';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly parallelism: number;
    readonly script: { readonly configMap: { readonly name: string; readonly file: string } };
    readonly arguments?: string;
    readonly initializer?: Pod;
    readonly starter?: Pod;
    readonly runner: Pod;
  };
}

/** The operator takes the token's switch as text. */
export interface Pod {
  readonly image?: string;
  readonly env?: readonly EnvVar[];
  readonly automountServiceAccountToken?: 'true' | 'false';
  readonly resources?: {
    readonly requests: Readonly<Record<string, string>>;
    readonly limits: Readonly<Record<string, string>>;
  };
  readonly securityContext?: {
    readonly runAsNonRoot: boolean;
    readonly runAsUser: number;
    readonly seccompProfile: { readonly type: 'RuntimeDefault' };
  };
  readonly containerSecurityContext?: {
    readonly allowPrivilegeEscalation: boolean;
    readonly capabilities: { readonly drop: readonly string[] };
  };
}

const env = {
  type: 'array',
  items: {
    type: 'object',
    required: ['name'],
    additionalProperties: false,
    properties: {
      name: { type: 'string' },
      value: { type: 'string' },
      valueFrom: {
        type: 'object',
        additionalProperties: false,
        properties: {
          secretKeyRef: {
            type: 'object',
            required: ['key'],
            additionalProperties: false,
            properties: { name: { type: 'string' }, key: { type: 'string' }, optional: { type: 'boolean' } },
          },
        },
      },
    },
  },
};

const quantities = {
  type: 'object',
  additionalProperties: { type: 'string', pattern: '^[0-9]+(m|Mi|Gi)?$' },
};

const pod = {
  type: 'object',
  additionalProperties: false,
  properties: {
    image: { type: 'string' },
    env,
    automountServiceAccountToken: { type: 'string' },
    resources: {
      type: 'object',
      additionalProperties: false,
      properties: { requests: quantities, limits: quantities },
    },
    securityContext: {
      type: 'object',
      additionalProperties: false,
      properties: {
        runAsNonRoot: { type: 'boolean' },
        runAsUser: { type: 'integer' },
        seccompProfile: {
          type: 'object',
          required: ['type'],
          additionalProperties: false,
          properties: { type: { type: 'string' } },
        },
      },
    },
    containerSecurityContext: {
      type: 'object',
      additionalProperties: false,
      properties: {
        allowPrivilegeEscalation: { type: 'boolean' },
        capabilities: {
          type: 'object',
          additionalProperties: false,
          properties: { drop: { type: 'array', items: { type: 'string' } } },
        },
      },
    },
  },
};

export const TESTRUN_SCHEMA = {
  type: 'object',
  required: ['apiVersion', 'kind', 'metadata', 'spec'],
  additionalProperties: false,
  properties: {
    apiVersion: { const: 'k6.io/v1alpha1' },
    kind: { const: 'TestRun' },
    metadata: {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 } },
    },
    spec: {
      type: 'object',
      required: ['parallelism', 'script'],
      additionalProperties: false,
      properties: {
        parallelism: { type: 'integer', minimum: 1, maximum: 2_147_483_647 },
        script: {
          type: 'object',
          additionalProperties: false,
          properties: {
            configMap: {
              type: 'object',
              required: ['name'],
              additionalProperties: false,
              properties: { name: { type: 'string' }, file: { type: 'string' } },
            },
          },
        },
        arguments: { type: 'string' },
        initializer: pod,
        starter: pod,
        runner: pod,
      },
    },
  },
} as const;
