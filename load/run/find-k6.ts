/** Finds k6 by K6_PATH, on the PATH or in the cache; else builds it with Go or copies it from its image, once. */
import { execFile } from 'node:child_process';
import { access, chmod, constants, copyFile, mkdir, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../engine/files.ts';
import { UsageError } from '../../engine/errors.ts';

export const K6_VERSION = 'v2.2.0';
const MODULE = 'go.k6.io/k6/v2';
const IMAGE = `grafana/k6:${K6_VERSION.slice(1)}`;
const BUILD_TIMEOUT_MS = 10 * 60_000;
const K6_HELP = `k6 was not found: set K6_PATH, or install Go 1.25 or a container engine and run \`npm run load -- install-k6\`, or see https://grafana.com/docs/k6/latest/set-up/install-k6/`;

const run = promisify(execFile);

export function cachedK6(): string {
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(cache, 'screenings-kit', `k6-${K6_VERSION}`, 'k6');
}

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

/** Returns the path of k6; if it is missing, installs it into the cache. Throws a UsageError that says how to. */
export async function ensureK6(tell: (line: string) => void): Promise<string> {
  const found = await findK6();
  if (found) return found;
  tell(`k6 ${K6_VERSION} is installed once; a build with Go takes a minute or two`);
  await using scratch = await temporaryFolder('screenings-k6');
  const got = (await buildWithGo(scratch.path)) ?? (await takeFromImage(scratch.path));
  if (!got) throw new UsageError(K6_HELP);
  const target = cachedK6();
  await mkdir(dirname(target), { recursive: true });
  // Copies next to the target and renames: concurrent runs must not see an incomplete file.
  const temporary = `${target}.${process.pid}`;
  await copyFile(got, temporary);
  await chmod(temporary, 0o755);
  await rename(temporary, target);
  return target;
}

/**
 * Builds k6 in a scratch module that only requires k6, so that the configured proxy serves everything; `go install`
 * would also contact the module's own site, which a closed network blocks. Undefined if there is no Go.
 */
async function buildWithGo(scratch: string): Promise<string | undefined> {
  try {
    const proxies = (await run('go', ['env', 'GOPROXY'])).stdout.trim();
    const proxyOnly = proxies.split(/[,|]/).filter((one) => one !== 'direct');
    const required = `module k6build\n\ngo 1.25\n\nrequire ${MODULE} ${K6_VERSION}\n`;
    await writeFile(join(scratch, 'go.mod'), required);
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
    return built;
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    if (code === 'ENOENT') return undefined;
    throw new UsageError(
      `k6 could not be built: ${stderr?.trim().split('\n').at(-1) ?? String(error)}; ${K6_HELP}`,
    );
  }
}

/** Copies k6 from the official image. Undefined if there is no engine, or if the binary is for another platform. */
async function takeFromImage(scratch: string): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  try {
    const options = { timeout: BUILD_TIMEOUT_MS };
    const container = (await run('docker', ['create', IMAGE], options)).stdout.trim().split('\n').at(-1)!;
    const binary = join(scratch, 'k6');
    try {
      await run('docker', ['cp', `${container}:/usr/bin/k6`, binary], options);
    } finally {
      await run('docker', ['rm', container], options);
    }
    return binary;
  } catch {
    return undefined;
  }
}

async function executable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
