/** Every law as a Playwright test. */
import { readRunFile, register } from '../specs/session.ts';
import { LAWS } from './laws.ts';

register(LAWS, (await readRunFile())?.only);
