/** Every probe of the specs and every law as a Playwright test. */
import { LAWS } from '../properties/laws.ts';
import { PROBES } from './probes.ts';
import { readRunFile, register } from './session.ts';

register([...PROBES, ...LAWS], (await readRunFile())?.only);
