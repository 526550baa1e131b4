/** Situations that take their time: played where a test is about them. */
import { SITUATIONS } from '../situations/all.ts';

export const SLOW = SITUATIONS.map(({ name }) => name).filter((name) =>
  /margin|expires|slow|429|long|three|for-ever/.test(name),
);
