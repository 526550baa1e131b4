/** A variant: a correct server with unusual behaviour. */
import type { Target } from '../../engine/target/target.ts';
import { both } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';

export interface Variant {
  readonly name: string;
  readonly server?: ServerOptions;
  readonly target?: (target: Target) => Target;
}

type Details = Omit<Variant, 'name'>;
type Named = Readonly<Record<string, ServerOptions | Details>>;

/** A server, or a server with the change of its target file. */
const isDetailed = (row: ServerOptions | Details): row is Details => 'server' in row || 'target' in row;

export const variants = (rows: Named): readonly Variant[] =>
  Object.entries(rows).map(([name, row]) => ({ name, ...(isDetailed(row) ? row : { server: row }) }));

/** Variants by group; those of a group can run together in one server. */
export type Groups = Readonly<Record<string, Named>>;

/** Combines several variants in one server, the first one innermost. */
export const combined = (variants: readonly Variant[]): Variant => ({
  name: variants.map(({ name }) => name).join(' · '),
  server: both(...variants.map(({ server = {} }) => server)),
  target: (target) => variants.reduce((said, { target: say }) => say?.(said) ?? said, target),
});

/** Changes the captured events like the pages: both transports return the same object (section 6). */
export const withEvents =
  (change: (line: string, index: number) => string | readonly string[]) =>
  (target: Target): Target => ({ ...target, events: target.events?.flatMap(change) });
export const withoutEvents = ({ events: _, ...target }: Target): Target => target;
/** Lets the kit exceed the rate limit. */
export const probing =
  (maxRequests: number) =>
  (target: Target): Target => ({ ...target, rateLimit: { maxRequests, maxSeconds: 20 } });
