/** What a run leaves for the next one in the file of `keepToken`: a token, `next` URLs, and screenings. */
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { SupplyUnusable } from '../../errors.ts';
import { makeFolder } from '../../files.ts';
import type { RunContext } from './context.ts';

const keptSchema = z.object({
  /** Their target: URLs and ids of another target prove nothing. */
  target: z.string(),
  /** Empty if none was kept yet. */
  token: z.string(),
  /** `goesOn`: its page had a next. */
  nexts: z.array(z.object({ url: z.string(), keptAtMs: z.number(), goesOn: z.boolean().optional() })),
  /** Only screenings that share their instant with no other. */
  screenings: z.array(z.object({ id: z.string().regex(/^-?\d+$/), testTime: z.string() })),
});

export type Kept = z.infer<typeof keptSchema>;

const OWNER_ONLY = 0o600;

/** What an earlier run left; empty without a file. */
export const keptByEarlierRun = (run: RunContext): Promise<Kept> =>
  run.once('kept by an earlier run', async () => {
    const { keepToken } = run.target;
    const text = keepToken ? await readFile(keepToken, 'utf8').catch(() => '') : '';
    const target = `${run.target.baseUrl} ${run.target.clients.primary.clientId}`;
    const kept = parsed(text);
    return kept?.target === target ? kept : { target, token: kept?.token ?? '', nexts: [], screenings: [] };
  });

function parsed(text: string): Kept | undefined {
  try {
    return keptSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Keeps a change for the next run and leaves the rest of the file. Throws SupplyUnusable. */
export async function keep(run: RunContext, change: Partial<Kept>): Promise<void> {
  const file = run.target.keepToken;
  if (!file) return;
  const earlier = await keptByEarlierRun(run);
  const kept = Object.assign(await run.once('kept by this run', async () => ({ ...earlier })), change);
  try {
    makeFolder(dirname(file));
    await writeFile(file, `${JSON.stringify(kept)}\n`, { mode: OWNER_ONLY });
    // writeFile sets the mode of new files only.
    await chmod(file, OWNER_ONLY);
  } catch (error) {
    throw new SupplyUnusable(`keepToken: can't write ${file} (${(error as NodeJS.ErrnoException).code})`);
  }
}
