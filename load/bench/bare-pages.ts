/** A minimal k6 script, as a baseline: requests one page at a rate and ignores the answer. */
import http from 'k6/http';
import type { Options } from 'k6/options';

const { URL = '', TOKEN = '', RATE = '1', DURATION = '1s' } = __ENV;

export const options: Options = {
  scenarios: {
    bare: { executor: 'constant-arrival-rate', rate: Number(RATE), duration: DURATION, preAllocatedVUs: 50 },
  },
};

export default function (): void {
  http.get(URL, { headers: { authorization: `Bearer ${TOKEN}` } });
}
