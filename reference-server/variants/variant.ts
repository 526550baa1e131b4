/** A variant: a correct server with unusual behaviour. */
import type { Target } from '../../engine/target/target.ts';
import { both } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';

export interface Variant {
  readonly name: string;
  readonly server?: ServerOptions;
  readonly target?: (target: Target) => Target;
}

export const variants = (servers: Readonly<Record<string, ServerOptions>>): readonly Variant[] =>
  Object.entries(servers).map(([name, server]) => ({ name, server }));

/** Combines several variants in one server, the first one innermost. */
export const combined = (variants: readonly Variant[]): Variant => ({
  name: variants.map(({ name }) => name).join(' · '),
  server: both(...variants.map(({ server = {} }) => server)),
  target: (target) => variants.reduce((said, { target: say }) => say?.(said) ?? said, target),
});
