/** A variant: a correct server with unusual behaviour. */
import type { Target } from '../../engine/target/target.ts';
import type { ServerOptions } from '../run/start.ts';

export interface Variant {
  /** Describes the behaviour in a few words; unique. */
  readonly name: string;
  readonly server?: ServerOptions;
  /** Changes the target file to describe the variant. */
  readonly target?: (target: Target) => Target;
}

/** Variants by name that need no change of the target file. */
export const variants = (servers: Readonly<Record<string, ServerOptions>>): readonly Variant[] =>
  Object.entries(servers).map(([name, server]) => ({ name, server }));

/** Combines several variants in one server, the first one innermost. */
export function combined(variants: readonly Variant[]): Variant {
  const all = variants.map(({ server = {} }) => server);
  const handlers = all.flatMap(({ wrapHandler }) => wrapHandler ?? []);
  const parts = all.flatMap(({ wrapParts }) => wrapParts ?? []);
  return {
    name: variants.map(({ name }) => name).join(' · '),
    server: {
      ...Object.assign({}, ...all),
      wrapHandler: (handler) => handlers.reduce((inner, wrap) => wrap(inner), handler),
      wrapParts: (inner) => parts.reduce((wrapped, wrap) => wrap(wrapped), inner),
    } as ServerOptions,
    target: (target) => variants.reduce((said, { target: say }) => say?.(said) ?? said, target),
  };
}
