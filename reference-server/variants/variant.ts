/** A variant: a correct server with unusual behaviour. */
import type { Target } from '../../engine/target/target.ts';
import { detailed, withEvents, type Behaviour } from '../faults/fault.ts';
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

/** For pages that spell testTime in another way: both transports return the same object (section 6). */
export const withTimesOfEvents = (spell: (testTime: string) => string) =>
  withEvents((line) => line.replace(/(?<="testTime":")[^"]*/, spell));
export const withoutEvents = ({ events: _, ...target }: Target): Target => target;
