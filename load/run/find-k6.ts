/** Finds k6: K6_PATH, the PATH, the kit's cache; else builds it once with Go, or names the container image. */
import { execFile } from 'node:child_process';
import { access, constants, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { UsageError } from '../../fixtures/target/usage.ts';

export const K6_VERSION = 'v2.2.0';
const MODULE = 'go.k6.io/k6/v2';
const BUILD_TIMEOUT_MS = 10 * 60_000;
export const K6_HELP = `k6 was not found: set K6_PATH, or install Go 1.25 and run \`npm run load -- install-k6\`, or see https://grafana.com/docs/k6/latest/set-up/install-k6/`;

const run = promisify(execFile);

/** Where the kit keeps the k6 that it built. */
export const cachedK6 = (): string =>
  join(
    process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'),
    'screenings-kit',
    `k6-${K6_VERSION}`,
    'k6',
  );

/** The path of a k6 that is there already. */
export async function findK6(): Promise<string | undefined> {
  const named = process.env['K6_PATH'];
  if (named) {
    if (await executable(named)) return named;
    throw new UsageError(`K6_PATH: ${named} is not an executable file`);
  }
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((directory) => join(directory, 'k6'));
  for (const path of [...onPath, cachedK6()]) if (await executable(path)) return path;
  return undefined;
}

/** The path of k6, built for the occasion where it is missing. Throws a UsageError that says how to get it. */
export async function ensureK6(tell: (line: string) => void): Promise<string> {
  const found = await findK6();
  if (found) return found;
  tell(`k6 ${K6_VERSION} is built once with Go; this takes a minute or two`);
  return installK6();
}

/**
 * Builds k6 in a scratch module: `go install` would ask the module's own site as well, which a closed network
 * refuses; a module that only requires k6 is served by the configured proxy alone.
 */
export async function installK6(): Promise<string> {
  const target = cachedK6();
  const scratch = await mkdtemp(join(tmpdir(), 'screenings-k6-'));
  try {
    const proxies = (await run('go', ['env', 'GOPROXY'])).stdout.trim();
    const proxyOnly = proxies.split(/[,|]/).filter((one) => one !== 'direct');
    await writeFile(
      join(scratch, 'go.mod'),
      `module k6build\n\ngo 1.25\n\nrequire ${MODULE} ${K6_VERSION}\n`,
    );
    await writeFile(join(scratch, 'tools.go'), `//go:build tools\n\npackage tools\n\nimport _ "${MODULE}"\n`);
    const built = join(scratch, 'k6');
    await run('go', ['build', '-buildvcs=false', '-trimpath', '-o', built, MODULE], {
      cwd: scratch,
      env: {
        ...process.env,
        GOFLAGS: '-mod=mod',
        CGO_ENABLED: '0',
        ...(proxyOnly.length > 0 ? { GOPROXY: proxyOnly.join(',') } : {}),
      },
      timeout: BUILD_TIMEOUT_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    await mkdir(join(target, '..'), { recursive: true });
    // Beside the target first: two builds at once must not see half a file.
    const beside = `${target}.${process.pid}`;
    await rename(built, beside).catch(async () => {
      await run('cp', [built, beside]);
    });
    await rename(beside, target);
    return target;
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    if (code === 'ENOENT') throw new UsageError(K6_HELP);
    throw new UsageError(
      `k6 could not be built: ${stderr?.trim().split('\n').at(-1) ?? String(error)}; ${K6_HELP}`,
    );
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function executable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
