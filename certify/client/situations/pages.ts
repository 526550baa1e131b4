/** Pages: sections 2.3, 2.4, 4.2 and 9. */
import { withPairs } from '../../../engine/client/page.ts';
import { answers, both, nextUrls, onPages, pages, tokenBody } from '../../../reference-server/run/alter.ts';
import { followFindings, reuseFindings } from '../judge-requests.ts';
import { reached, situationsOf, type SituationRow } from '../situation.ts';
import { atMost } from '../stage.ts';
import { fractional, FRACTIONAL_WINDOW, large, plain, tied, twiceShown, usual, WINDOW } from './blocks.ts';

const LOOK_AT_NEXT = [
  'the URL of the next request: links.next as it is, not put together from its parameters',
  'a URL library that decodes and encodes again: a + in an offset arrives as a space',
];

const spelt = (title: string, spell: (next: URL) => string): SituationRow => ({
  title,
  lookAt: LOOK_AT_NEXT,
  stage: () => usual(nextUrls(spell)),
  judge: followFindings,
});

const everyOctet = (text: string): string =>
  Buffer.from(decodeURIComponent(text)).toString('hex').replace(/../g, '%$&');

const LONG_WALK_PAGES = 120;

export const pagesSituations = situationsOf('4.2', {
  'plain-walk': {
    title:
      'following `links.next` until it is absent collects every screening of the window, at the default page size',
    lookAt: [
      'the loop: it ends where links.next is absent, and nowhere else',
      'the first request: from, to and the tenant of the environment, percent-encoded',
      'the token request: a form with grant_type, client_id, client_secret and scope',
      ...LOOK_AT_NEXT,
    ],
    stage: () => ({ screenings: plain(250), window: WINDOW }),
    judge: followFindings,
  },
  'long-walk': {
    section: '5.6',
    level: 'SHOULD',
    title: `a walk of ${LONG_WALK_PAGES} pages uses one token, instead of a new one for each request`,
    lookAt: ['where the token is kept: with the client and not within the function that asks for a page'],
    stage: () => ({ screenings: plain(5 * LONG_WALK_PAGES - 2), window: WINDOW, pageSize: 5 }),
    judge: reuseFindings(10),
  },
  'short-pages': {
    section: '2.4',
    title: 'a page with fewer items than pageSize is not the last one: only an absent `next` says so',
    lookAt: ['the end of the loop: an absent links.next, not the number of items'],
    stage: () => usual(atMost(7)),
  },
  'empty-page-with-next': {
    section: '2.4',
    title: 'a page without items that has a `next` is not the last one',
    lookAt: ['the end of the loop: an absent links.next, not an empty array of items'],
    // Ties, so that a client that cuts its window follows next too.
    stage: () => ({ ...usual(emptyPages), screenings: tied() }),
    met: reached(({ page }) => page?.items.length === 0 && page.next !== undefined, 'the empty page'),
  },
  'empty-window': {
    title: 'for a window without screenings, nothing is printed and the exit status is 0',
    lookAt: ['how the client treats an empty array of items: as no error'],
    stage: () => ({ ...usual(), window: { from: '2026-05-01T00:00:00Z', to: '2026-05-02T00:00:00Z' } }),
  },
  'ties-across-pages': {
    title:
      'ties (screenings at the same instant) are collected completely, even if they fill more than a page',
    lookAt: [
      'the next request: links.next carries from_id, which tells ties apart; the last testTime alone does not',
      'deduplication: the key is the id and not the testTime',
    ],
    stage: () => ({ ...usual(), screenings: tied() }),
  },
  'large-ids': {
    section: '2.3',
    title: 'ids beyond 2^53 keep all digits, so that neighbouring ids stay distinct',
    lookAt: ['the JSON parser: ids as 64-bit integers or text, not as doubles'],
    stage: () => ({ ...usual(), screenings: large() }),
  },
  'offsets-and-fractions': {
    title: 'testTimes in any offset and to the nanosecond, and a window in offsets of its own, lose nothing',
    lookAt: [
      'the query: a + of an offset is sent as %2B',
      'from, to and times on their way to the next request: no Date or float, which cut them to milliseconds',
      'deduplication: the key is the id and not the testTime',
    ],
    stage: () => ({ ...usual(), screenings: fractional(), window: FRACTIONAL_WINDOW }),
    judge: followFindings,
  },
  'summer-time-ends': {
    title:
      'instants are compared, not their texts: in the window, whose edges stand the other way round as text, in items that repeat an hour, and in `next`',
    lookAt: ['comparisons of from, to and testTime: as instants, with their offsets', ...LOOK_AT_NEXT],
    stage: () => ({
      ...usual(),
      screenings: twiceShown(),
      window: { from: '2026-10-25T09:30:00+09:00', to: '2026-10-25T02:10:00Z' },
    }),
    judge: followFindings,
  },
  'next-in-another-order': spelt(
    '`next` is followed as given, with its parameters in another order',
    (next) => withPairs(next.href, (pairs) => [...pairs].reverse()),
  ),
  'next-with-extra-parameters': spelt(
    '`next` is followed as given, with parameters that the client does not know, empty and repeated ones too',
    (next) =>
      withPairs(next.href, (pairs) => [
        'snapshot=a%2Fb',
        ...pairs,
        'cursor=eJwz%3D',
        'tag=b',
        'tag=a',
        'all=',
      ]),
  ),
  'next-percent-encoded': spelt('`next` is followed as given, whatever it percent-encodes', (next) =>
    withPairs(next.href, (pairs) =>
      pairs.map((pair) => pair.replace(/(?<!^pageSize)=(.*)/, (_, value: string) => `=${everyOctet(value)}`)),
    ),
  ),
  'next-relative': {
    level: 'SHOULD',
    ...spelt(
      'a `next` that is a relative reference is resolved against the request (RFC 3986, 5)',
      (next) => `${next.pathname}${next.search}`,
    ),
  },
  'unknown-fields': {
    section: '9.3',
    title: 'unknown members in a screening, a page, its links and a token response are tolerated',
    lookAt: ['the JSON mapping: unknown members are ignored, not an error (section 9, rule 3)'],
    stage: () => usual(withUnknownFields),
  },
  'json-spelt-differently': {
    title:
      'JSON is parsed as JSON: white space, the order of members and escapes (`\\/`, `\\u0026`) change nothing',
    lookAt: ['how JSON is read: by a parser, not by regular expressions or the place in the text'],
    stage: () => usual(speltDifferently),
  },
  'link-header-among-others': {
    level: 'SHOULD',
    title: 'a `Link` header with further relations and parameters (RFC 8288) is parsed correctly',
    lookAt: [
      'the parser of the Link header, where it is used: several links, parameters in quotes with commas',
    ],
    stage: () => usual(furtherLinks),
  },
  addresses: {
    section: '4.1',
    title: 'base_url and auth_url are taken as given: two origins, and a path before /v1 and /oauth',
    lookAt: ['how URLs are built: the path is appended to base_url, and does not replace its path'],
    stage: () => usual({ pathPrefix: '/gateway/api', separateOrigins: true }),
  },
  'secret-form-encoded': {
    section: '4.1',
    title: 'the token request is form-encoded: a client_secret may hold any character',
    lookAt: ['how the form is encoded: by the library, not by concatenation'],
    stage: () => ({ ...usual(), clientSecret: 'p+l%u&s=%2B/"\'\\ ~$HOME`x' }),
  },
});

/** Inserts an empty page with a `next` before each further page. */
const emptyPages = nextUrls((next, page, query) => {
  if (!query.has('from_id') || query.has('scan')) return next;
  page.items = [];
  return `${next.origin}${next.pathname}?${query}&scan=2`;
});

const withUnknownFields = both(
  pages((page, query) => {
    // As if the service were updated during the walk.
    const later = query.has('from_id') ? ',"room":{"floor":2}' : '';
    const further = `,"site":{"name":"Nord","tags":["a",{"b":null}]},"score":1.5e3,"reviewed":null${later}`;
    page.items = page.items.map((item) => `${item.slice(0, -1)}${further}}`);
    page.links = { self: '/here', ...(page.links as object), last: { href: '/there' } };
    page.further = `,"total":null,"meta":{"took":[1,2,3]}`;
  }),
  tokenBody((body) => ({ ...body, issued_by: { node: 3 }, not_before: null })),
);

const ESCAPES: Readonly<Record<string, string>> = { '/': '\\/', '&': '\\u0026' };

/** Indents, puts links and testTime first, and escapes as PHP and Go do. */
const speltDifferently = answers(
  (answer) => {
    const reordered = String(answer.body)
      .replace(/^\{("items":.*),("links":\{[^{}]*\})\}$/s, '{$2,$1}')
      .replace(/\{("id":\d+,"tenantId":"[^"]*"),("testTime":"[^"]*")/g, '{$2,$1');
    const body = reordered.replace(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g, (piece) =>
      piece.startsWith('"') ? piece.replace(/[/&]/g, (octet) => ESCAPES[octet]!) : `\n  ${piece} `,
    );
    return { ...answer, body };
  },
  ({ status, body }) => status === 200 && typeof body === 'string',
);

const furtherLinks = onPages((answer) => ({
  ...answer,
  headers: [
    ['link', '</about?a=1,2;b>; title="the next, and more"; rel="help", </first>; rel=first'],
    ...answer.headers.map(
      ([name, value]) =>
        [name, value.replace('; rel="next"', '; title="page 2, 3"; rel="prefetch next"')] as const,
    ),
    ['link', '</previous>; rel="prev"'],
  ],
}));
