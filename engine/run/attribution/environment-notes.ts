/** Unusual properties of the path to the target that break no requirement. */
import type { TargetClock } from '../../client/target-clock.ts';
import type { Target } from '../../target/target.ts';

const SKEW_WORTH_TELLING_MS = 30_000;

export function environmentNotes(
  { baseUrl, authUrl }: Pick<Target, 'baseUrl' | 'authUrl'>,
  { skewMs = 0, wrongDateMs }: Pick<TargetClock, 'skewMs' | 'wrongDateMs'>,
): string[] {
  const origins = [...new Set([baseUrl, authUrl].map((url) => new URL(url).origin))];
  const open = origins
    .filter(isOpen)
    .map(
      (origin) => `${origin} is used without TLS: tokens and secrets can be read in transit (RFC 6750, 5.3)`,
    );
  const side = skewMs > 0 ? 'behind' : 'ahead of';
  const skewed =
    Math.abs(skewMs) > SKEW_WORTH_TELLING_MS
      ? [
          `the clock of this machine is ${Math.round(Math.abs(skewMs) / 1000)} s ${side} the target's, which decides`,
        ]
      : [];
  const dated =
    wrongDateMs === undefined
      ? []
      : [
          `Date is ${Math.round(wrongDateMs / 1000)} s off, but iat and exp of tokens agree with the clock of this machine, which is used instead: check in the log of the service whether it or a proxy sets Date`,
        ];
  return [...open, ...skewed, ...dated];
}

/** Plain http to another machine. */
function isOpen(origin: string): boolean {
  const { protocol, hostname } = new URL(origin);
  return protocol === 'http:' && !/^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}
