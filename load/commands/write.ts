/** Writes files to run k6 elsewhere: for its operator on a cluster (`--kubernetes DIR`), and copies of the scripts (`write-scripts DIR`). */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { LoadConfig } from '../k6/lib/config.ts';
import { enoughVUs } from '../estimate/random.ts';
import { K6_VERSION } from '../run/find-k6.ts';
import { baseEnvironment, CERTIFICATE_DIRECTORIES, K6_OFFLINE, writeScript } from '../run/k6-run.ts';
import { PARALLELISM } from '../run/flags.ts';
import type { Scenario, Session } from '../run/session.ts';
import { type ScenarioName, SCENARIOS } from '../scenarios/all.ts';
import { UsageError } from '../../engine/errors.ts';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../engine/files.ts';

const run = promisify(execFile);

/** A ConfigMap is limited to 1 MiB, with the archive in base64. */
const MAX_ARCHIVE_BYTES = 760_000;
const ARCHIVE_TIMEOUT_MS = 60_000;

/** Writes a ConfigMap, a TestRun and a README for creating the secret; returns the paths. Throws UsageError. */
export async function writeKubernetes(scenario: ScenarioName, session: Session, directory: string) {
  const { over }: Scenario = SCENARIOS[scenario];
  const { rate: requestsPerSecond, duration: seconds, maxVus, parallelism = PARALLELISM } = session.options;
  const own = over?.(session.options) ?? {};
  const peak = requestsPerSecond * (own.spikeFactor ?? 1);
  const runId = randomBytes(4).toString('hex');
  const config: LoadConfig = session.config(scenario, {
    runId,
    parts: parallelism,
    requestsPerSecond,
    seconds,
    ...own,
    // Each runner needs at least one VU.
    vus: Math.max(parallelism, Math.min(maxVus, enoughVUs(peak, session.slo.p99Ms))),
  });
  const name = `screenings-${scenario}-${runId}`;
  const secrets = Object.keys(session.prepared.env);
  const { ca } = session.prepared.target;
  const archive = await makeArchive(session.k6, config);
  if (archive.length > MAX_ARCHIVE_BYTES)
    throw new UsageError('--kubernetes: the archive is too large for a ConfigMap');
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    binaryData: { 'kit.tar': archive.toString('base64') },
    ...(ca === undefined ? {} : { data: { 'ca.pem': ca } }),
  };
  await mkdir(directory, { recursive: true });
  const files = {
    'configmap.json': `${JSON.stringify(configMap, null, 2)}\n`,
    'testrun.json': `${JSON.stringify(testRunOf(name, secrets, parallelism, session.options.out), null, 2)}\n`,
    'README.md': note(name, secrets, parallelism),
  };
  for (const [file, content] of Object.entries(files)) await writeFile(join(directory, file), content);
  return Object.keys(files).map((file) => join(directory, file));
}

async function makeArchive(k6: string, config: LoadConfig): Promise<Buffer> {
  await using directory = await temporaryFolder('screenings-load');
  const tar = join(directory.path, 'kit.tar');
  const { LOAD_CONFIG, path } = await writeScript(config, directory.path);
  await run(k6, ['archive', '--quiet', '-e', `LOAD_CONFIG=${LOAD_CONFIG}`, '-O', tar, path], {
    // An archive contains the values of `-e`; no secret is passed.
    env: { PATH: process.env['PATH'] ?? '', HOME: directory.path, ...K6_OFFLINE },
    timeout: ARCHIVE_TIMEOUT_MS,
  });
  return await readFile(tar);
}

const K6_USER = 12_345;
/** A restricted pod (Pod Security Standards) without access to the cluster's API. */
const RESTRICTED = {
  automountServiceAccountToken: 'false',
  securityContext: { runAsNonRoot: true, runAsUser: K6_USER, seccompProfile: { type: 'RuntimeDefault' } },
  containerSecurityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
};
/** Requests a full processor, because a runner with less measures its own delay. */
const RUNNER = { requests: { cpu: '1', memory: '512Mi' }, limits: { cpu: '2', memory: '2Gi' } };
const SMALL = { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '1', memory: '512Mi' } };

/** The TestRun of k6's operator (k6.io/v1alpha1). */
export function testRunOf(
  name: string,
  secrets: readonly string[],
  parallelism: number,
  outputs: readonly string[] = [],
) {
  const ofOutputs = Object.entries(baseEnvironment()).filter(([key]) => key.startsWith('K6_'));
  // The operator mounts the ConfigMap, which may contain certificates, at /test.
  const variables = {
    ...Object.fromEntries(ofOutputs),
    ...K6_OFFLINE,
    SSL_CERT_DIR: `/test:${CERTIFICATE_DIRECTORIES}`,
  };
  const plain = Object.entries(variables).map(([key, value]) => ({ name: key, value }));
  const secret = secrets.map((key) => ({ name: key, valueFrom: { secretKeyRef: { name, key } } }));
  const image = `grafana/k6:${K6_VERSION.slice(1)}`;
  return {
    apiVersion: 'k6.io/v1alpha1',
    kind: 'TestRun',
    metadata: { name },
    spec: {
      parallelism,
      script: { configMap: { name, file: 'kit.tar' } },
      // Findings are parsed from the log, so it must be raw.
      arguments: ['--quiet --log-format=raw', ...outputs].join(' --out '),
      initializer: { ...RESTRICTED, image, env: plain, resources: SMALL },
      starter: { ...RESTRICTED, resources: SMALL },
      runner: { ...RESTRICTED, image, env: [...plain, ...secret], resources: RUNNER },
    },
  };
}

/** Throws a UsageError for a target that runners on a cluster cannot reach. */
export function refuseLoopback({ baseUrl, authUrl }: Pick<LoadConfig, 'baseUrl' | 'authUrl'>): void {
  for (const url of [baseUrl, authUrl]) {
    const { hostname } = new URL(url);
    if (/^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\]|0\.0\.0\.0)$/.test(hostname))
      throw new UsageError(
        `--kubernetes: ${hostname} is this machine, unreachable for the cluster's runners`,
      );
  }
}

function note(name: string, secrets: readonly string[], parallelism: number): string {
  const literals = secrets.map((key) => `  --from-literal=${key}="$${key}"`).join(' \\\n');
  return `# ${name} on a cluster

With k6's operator installed, and the secrets in the environment:

\`\`\`sh
kubectl create secret generic ${name} \\
${literals}
kubectl apply --server-side --dry-run=server -f testrun.json   # checks the file with the operator
kubectl apply --server-side -f configmap.json -f testrun.json
\`\`\`

Each of the ${parallelism} runners prints one line of JSON at its end. Collect and merge them:

\`\`\`sh
for pod in $(kubectl get pods -l k6_cr=${name},runner=true -o name); do kubectl logs "$pod" > "$(basename "$pod").log"; done
npm run load -- merge *.log
\`\`\`

\`merge\` needs every part of this run once: the SLO must hold for all together, and the thresholds of every part. It has a
scenario's exit status.
Delete the run with \`kubectl delete -f testrun.json -f configmap.json\` and the secret \`${name}\`.
`;
}

const LOAD = fileURLToPath(new URL('..', import.meta.url));
/** Tests and scripts that only the kit runs. */
const EXCLUDED = /\.test\.ts$|\bk6\/tenants\.ts$/;

/** Copies the scripts, with the folders that they import, and returns their paths. */
export async function writeScripts(directory: string): Promise<string[]> {
  const filter = (path: string): boolean => !EXCLUDED.test(path);
  for (const folder of ['k6', 'estimate'])
    await cp(join(LOAD, folder), join(directory, folder), { recursive: true, filter });
  const files = await readdir(join(directory, 'k6'));
  return files.filter((name) => /(?<!\.d)\.ts$/.test(name)).map((name) => join(directory, 'k6', name));
}
