/** Every probe of the specs as a Playwright test. */
import { PROBES } from './probes.ts';
import { readRunFile, register } from './session.ts';

register(PROBES, (await readRunFile())?.only);
