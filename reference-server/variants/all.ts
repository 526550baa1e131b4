/** All variants; those of a group run together in one server, the ones of earlier files innermost. */
import { accidents } from './accidents.ts';
import { health } from './health.ts';
import { pages } from './pages.ts';
import { refusals } from './refusals.ts';
import { stacks } from './stacks.ts';
import { stores } from './stores.ts';
import { tokens } from './tokens.ts';
import { transport } from './transport.ts';
import { variants, type Variant } from './variant.ts';

export const GROUPS: Readonly<Record<string, readonly Variant[]>> = {};
for (const groups of [tokens, stores, pages, refusals, accidents, health, stacks, transport])
  for (const [name, rows] of Object.entries(groups))
    Object.assign(GROUPS, { [name]: [...(GROUPS[name] ?? []), ...variants(rows)] });
