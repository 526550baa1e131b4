/** `--kubernetes DIR`: what k6's operator needs to run a scenario on several machines. No secret is written. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { LoadConfig } from '../k6/lib/config.ts';
import { K6_VERSION } from '../run/find-k6.ts';
import { K6_OFFLINE, scriptPath } from '../run/k6-run.ts';
import type { Session } from '../run/session.ts';
import { SCENARIOS, type ScenarioName } from '../scenarios/all.ts';
import type { Scenario, ScenarioOptions } from '../scenarios/scenario.ts';
import type { EnvVar, TestRun } from './testrun.ts';
import { UsageError } from '../../fixtures/errors.ts';

const run = promisify(execFile);

/** A ConfigMap holds a mebibyte, the archive in base64. */
const LARGEST_ARCHIVE = 760_000;
const ARCHIVE_TIMEOUT_MS = 60_000;

/** Writes ConfigMap, TestRun and a note of the secret to create; the paths written. Throws UsageError. */
export async function writeKubernetes(
  scenario: ScenarioName,
  session: Session,
  options: Pick<ScenarioOptions, 'requestsPerSecond' | 'seconds' | 'spikeFactor' | 'headSeconds'>,
  directory: string,
  parallelism: number,
): Promise<string[]> {
  const { script }: Scenario = SCENARIOS[scenario];
  // The others decide from one step to the next, which runners can't do together.
  if (!script)
    throw new UsageError(
      `--kubernetes: ${scenario} decides from step to step; use ${Object.entries<Scenario>(SCENARIOS)
        .flatMap(([name, one]) => (one.script ? [name] : []))
        .join(', ')} (with --rate)`,
    );
  const { requestsPerSecond, seconds, spikeFactor, headSeconds } = options;
  const peak = requestsPerSecond * (scenario === 'spike' ? spikeFactor : 1);
  const open = Math.ceil((peak * 2 * session.settings.slo.p99Ms) / 1000) + 20;
  const config: LoadConfig = session.config(scenario, {
    requestsPerSecond,
    seconds,
    // Fewer VUs than runners would leave a runner without any.
    vus: Math.max(parallelism, open),
    ...(scenario === 'spike' ? { spikeFactor } : {}),
    ...(scenario === 'poll' ? { headSeconds } : {}),
    ...(scenario === 'smoke' ? { judgeEvery: 1 } : {}),
    records: false,
  });
  const name = `screenings-${scenario}`;
  const archive = await makeArchive(session.k6, script, config);
  if (archive.length > LARGEST_ARCHIVE)
    throw new UsageError('--kubernetes: the archive is too large for a ConfigMap');

  const testRun = testRunOf(name, Object.keys(session.prepared.env), parallelism);
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    binaryData: { 'kit.tar': archive.toString('base64') },
  };
  await mkdir(directory, { recursive: true });
  const files: [string, string][] = [
    ['configmap.json', `${JSON.stringify(configMap, null, 2)}\n`],
    ['testrun.json', `${JSON.stringify(testRun, null, 2)}\n`],
    ['README.md', note(name, Object.keys(session.prepared.env))],
  ];
  for (const [file, content] of files) await writeFile(join(directory, file), content);
  return files.map(([file]) => join(directory, file));
}

async function makeArchive(k6: string, script: string, config: LoadConfig): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-load-'));
  try {
    const configPath = join(directory, 'config.json');
    const tar = join(directory, 'kit.tar');
    await writeFile(configPath, JSON.stringify(config));
    await run(k6, ['archive', '--quiet', '-e', `LOAD_CONFIG=${configPath}`, '-O', tar, scriptPath(script)], {
      // The archive keeps what `-e` names, and no secret is in its reach.
      env: { PATH: process.env['PATH'] ?? '', HOME: directory, ...K6_OFFLINE },
      timeout: ARCHIVE_TIMEOUT_MS,
    });
    return await readFile(tar);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export function testRunOf(name: string, secrets: readonly string[], parallelism: number): TestRun {
  const plain: EnvVar[] = Object.entries(K6_OFFLINE).map(([key, value]) => ({
    name: key,
    value,
  }));
  const secret = secrets.map((key): EnvVar => ({ name: key, valueFrom: { secretKeyRef: { name, key } } }));
  const image = `grafana/k6:${K6_VERSION.slice(1)}`;
  return {
    apiVersion: 'k6.io/v1alpha1',
    kind: 'TestRun',
    metadata: { name },
    spec: {
      parallelism,
      script: { configMap: { name, file: 'kit.tar' } },
      arguments: '--quiet',
      initializer: { image, env: plain },
      runner: { image, env: [...plain, ...secret] },
    },
  };
}

function note(name: string, secrets: readonly string[]): string {
  const literals = secrets.map((key) => `  --from-literal=${key}="$${key}"`).join(' \\\n');
  return `# ${name} on a cluster

With k6's operator installed, and the secrets in the environment:

\`\`\`sh
kubectl create secret generic ${name} \\
${literals}
kubectl apply -f configmap.json -f testrun.json
\`\`\`

Each runner prints one line of JSON at its end. Collect and add up:

\`\`\`sh
for pod in $(kubectl get pods -l k6_cr=${name},runner=true -o name); do kubectl logs "$pod" > "$(basename "$pod").log"; done
npm run load -- merge *.log
\`\`\`

Thresholds are held by each runner for itself; the merged quantiles speak for all of them.
`;
}
