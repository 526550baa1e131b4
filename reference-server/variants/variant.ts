/** A variant: a correct server with unusual behaviour. */
import type { Target } from '../../engine/target/target.ts';
import { detailed, type Behaviour } from '../faults/fault.ts';
import { both } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';

export type Variant = Behaviour;

type Named = Readonly<Record<string, ServerOptions | Omit<Variant, 'name'>>>;

export const variants = (rows: Named): readonly Variant[] =>
  Object.entries(rows).map(([name, row]) => ({ name, ...detailed(row) }));

/** Variants by group; those of a group can run together in one server. */
export type Groups = Readonly<Record<string, Named>>;

/** Combines several variants in one server, the first one innermost. */
export const combined = (variants: readonly Variant[]): Variant => ({
  name: variants.map(({ name }) => name).join(' · '),
  server: both(...variants.map(({ server = {} }) => server)),
  target: (target) => variants.reduce((said, { target: say }) => say?.(said) ?? said, target),
});

/** Changes the captured events like the pages: both transports return the same object (section 6). */
export type EventChange = (line: string, index: number, all: readonly string[]) => string | readonly string[];
export const withEvents =
  (change: EventChange) =>
  (target: Target): Target => ({ ...target, events: target.events?.flatMap(change) });
export const withTimesOfEvents = (spell: (testTime: string) => string) =>
  withEvents((line) => line.replace(/(?<="testTime":")[^"]*/, spell));
export const withoutEvents = ({ events: _, ...target }: Target): Target => target;
/** Lets the kit exceed the rate limit. */
export const probing =
  (maxRequests: number) =>
  (target: Target): Target => ({ ...target, rateLimit: { maxRequests, maxSeconds: 20 } });
