/** PostgreSQL in a container, started by Testcontainers. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { unlessAborted } from '../../engine/clock.ts';
import { missingPackage } from '../../engine/package.ts';
import { freePort, type RunningPostgres } from './postgres-embedded.ts';

/** SCREENINGS_POSTGRES_IMAGE selects another image with the environment variables of the official one. */
const POSTGRES_IMAGE = process.env['SCREENINGS_POSTGRES_IMAGE'] || 'postgres:18-alpine';

const PROBE_TIMEOUT_MS = 3_000;
const PULL_TIMEOUT_MS = { unasked: 60_000, asked: 600_000 } as const;

/** The image to start, or the reason why none can be started. */
type Engine = { readonly image: string } | { readonly reason: string };

/** Looks for an engine with the image, or pulls it, in limited time. 'unasked': not if no engine was ever installed. */
export async function findEngine(how: 'asked' | 'unasked'): Promise<Engine> {
  if (how === 'unasked' && !engineSockets().some(existsSync) && !process.env['DOCKER_HOST'])
    return { reason: 'no container engine' };
  try {
    const { getContainerRuntimeClient, ImageName } = await import('testcontainers');
    const client = await withTimeout(getContainerRuntimeClient());
    const image = ImageName.fromString(POSTGRES_IMAGE);
    if (!(await withTimeout(client.image.exists(image)))) {
      const late = `pulling ${POSTGRES_IMAGE} takes too long`;
      await withTimeout(client.image.pull(image), PULL_TIMEOUT_MS[how], late);
    }
    return { image: POSTGRES_IMAGE };
  } catch (error) {
    if (missingPackage(error)) return { reason: 'testcontainers is not installed' };
    return { reason: error instanceof Error ? error.message : String(error) };
  }
}

export async function startContainer(image: string): Promise<RunningPostgres> {
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const { getContainerRuntimeClient } = await import('testcontainers');
  // The port must be fixed: the engine would choose another one for the restart after an outage.
  const port = { container: 5432, host: await freePort() };
  const container = await new PostgreSqlContainer(image).withExposedPorts(port).start();
  const { container: engine } = await getContainerRuntimeClient();
  const itself = engine.getById(container.getId());
  const isRunning = async (): Promise<boolean> => (await itself.inspect()).State.Running;
  return {
    url: container.getConnectionUri(),
    description: `PostgreSQL in a container (${image})`,
    outage: {
      begin: async () => void ((await isRunning()) && (await itself.kill())),
      end: async () => void ((await isRunning()) || (await itself.start())),
    },
    stop: async () => void (await container.stop()),
  };
}

function engineSockets(): string[] {
  const runtimeDir = process.env['XDG_RUNTIME_DIR'] ?? `/run/user/${process.getuid?.() ?? 0}`;
  return [
    '/var/run/docker.sock',
    join(runtimeDir, 'docker.sock'),
    join(runtimeDir, 'podman/podman.sock'),
    join(homedir(), '.docker/run/docker.sock'),
    join(homedir(), '.testcontainers.properties'),
  ];
}

/** Rejects with the message if the work takes too long. */
const withTimeout = <Value>(
  work: Promise<Value>,
  timeoutMs = PROBE_TIMEOUT_MS,
  message = 'no container engine answers',
): Promise<Value> =>
  unlessAborted(AbortSignal.timeout(timeoutMs), work).catch((error: Error) => {
    throw error.name === 'TimeoutError' ? new Error(message) : error;
  });
