/** PostgreSQL in a container, by Testcontainers. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import type { RunningPostgres } from './running-postgres.ts';

/** SCREENINGS_POSTGRES_IMAGE names another image that understands the official one's environment. */
const POSTGRES_IMAGE = process.env['SCREENINGS_POSTGRES_IMAGE'] || 'postgres:18-alpine';

const LOOK_TIMEOUT_MS = 3_000;
const PULL_TIMEOUT_MS = { unasked: 60_000, asked: 600_000 } as const;

/** The image that can be started, or the reason why none can. */
type Engine = { readonly image: string } | { readonly reason: string };

/**
 * Looks for a container engine that has the image or can get it, and never waits long for one:
 * unasked, a place where no engine ever was is not even asked.
 */
export async function findEngine(how: 'asked' | 'unasked'): Promise<Engine> {
  if (how === 'unasked' && !placesOfEngines().some(existsSync) && !process.env['DOCKER_HOST']) {
    return { reason: 'no container engine' };
  }
  try {
    const { getContainerRuntimeClient, ImageName } = await import('testcontainers');
    const client = await within(LOOK_TIMEOUT_MS, 'no container engine answers', getContainerRuntimeClient());
    const image = ImageName.fromString(POSTGRES_IMAGE);
    const present = await within(
      LOOK_TIMEOUT_MS,
      'the container engine does not answer',
      client.image.exists(image),
    );
    if (!present) {
      await within(
        PULL_TIMEOUT_MS[how],
        `pulling ${POSTGRES_IMAGE} takes too long`,
        client.image.pull(image),
      );
    }
    return { image: POSTGRES_IMAGE };
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) };
  }
}

export async function startContainer(image: string): Promise<RunningPostgres> {
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const { getContainerRuntimeClient } = await import('testcontainers');
  // A port of the engine's choice would be another one after an outage.
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

function placesOfEngines(): string[] {
  const runtimeDir = process.env['XDG_RUNTIME_DIR'] ?? `/run/user/${process.getuid?.() ?? 0}`;
  return [
    '/var/run/docker.sock',
    join(runtimeDir, 'docker.sock'),
    join(runtimeDir, 'podman/podman.sock'),
    join(homedir(), '.docker/run/docker.sock'),
    join(homedir(), '.testcontainers.properties'),
  ];
}

async function within<Value>(timeoutMs: number, message: string, work: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}
