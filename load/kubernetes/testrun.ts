/** The TestRun of k6's operator (k6.io/v1alpha1), as far as the kit writes it. */

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
