/** Reports for tests of renderings: realistic ones, and one with only hostile text. */
import { CLASSES, REQUIREMENTS, type RequirementId } from '../../engine/requirements.ts';
import type { Failure } from '../../engine/run/evidence/evidence.ts';
import { resultsOf as resultsOfClient } from '../client/report.ts';
import type { Report, RequirementResult } from '../report/report.ts';
import type { Format, Results } from './results.ts';
import { terminal } from './terminal.ts';
import { RENDERINGS } from './write.ts';

type Outcome = Partial<Pick<RequirementResult, 'status' | 'reason' | 'checks' | 'failures'>>;
type Outcomes = Readonly<Partial<Record<RequirementId, Outcome>>>;

const BASE_URL = 'https://api.acme.example/screenings';
const PAGE = `${BASE_URL}/v1/tenants/7d0cf1b6-2f0e-4b7c-9a55-0c8e3a1f4d20/screenings?from=2026-03-01T00%3A00%3A00Z`;

const failure = (expected: string, received: string, more: Partial<Failure> = {}): Failure => ({
  message: `expected ${expected}, got ${received}`,
  ...{ expected, received },
  request: `GET ${PAGE}`,
  response: '200 {"items":[…,{"id":4711,"testTime":"2026-03-29T01:30:00+01:00"}],"links":{}}',
  curl: `curl -sS -i -H "Authorization: Bearer $TOKEN" '${PAGE}'`,
  ...more,
});

const UNTESTED: Readonly<Partial<Record<(typeof CLASSES)[number], string>>> = {
  expiry: 'no expired token: name one as `expiredToken` in the target file',
  events: 'no captured events: name their file as `events` in the target file',
  failure: 'no command that makes the server fail: name it as `fault` in the target file',
};

const BROKEN: Outcomes = {
  '4.2-to-exclusive': {
    status: 'fail',
    failures: [
      failure(
        'no item at or after 2026-03-29T00:30:00Z',
        'item 4711 at 2026-03-29T01:30:00+01:00 (the same instant)',
        { confirmed: '3 of 3' },
      ),
    ],
  },
  '4.2-r5-exactly-once': {
    status: 'fail',
    failures: [
      failure('item 17 once in the walk', 'it on pages 2 and 3', {
        ...{ confirmed: '3 of 3', count: 40 },
        counterexample: {
          law: 'two page sizes give the same traversal',
          script: ['pageSize 2', 'page 2: 17, 18', 'page 3: 17, 19 (repeats id 17)'],
          ...{ seed: 42, path: '3:1:0:0' },
        },
      }),
      failure('7 items at 2026-01-01T00:00:00Z', '5', { confirmed: 'flaky, 1 of 3' }),
    ],
  },
  '2.4-full-pages': {
    status: 'warn',
    failures: [failure('100 items on a page with next', '97', { count: 12 })],
  },
  '4.2-fractions-finer': {
    ...{ status: 'untested', checks: 0 },
    reason: 'no neighbours one microsecond apart in the data: load some (npm run dataset makes them)',
  },
  '9-prefix': { status: 'error', checks: 3, reason: 'TypeError: url is undefined (specs/9.spec.ts:12)' },
};

/** A report in which everything has passed, except `outcomes` and classes that are untested by default. */
export function sampleReport(outcomes: Outcomes = BROKEN, changes: Partial<Report> = {}): Report {
  const requirements = REQUIREMENTS.map((row, index): RequirementResult => {
    const reason = UNTESTED[row.class];
    const usual: Outcome = reason ? { status: 'untested', reason, checks: 0 } : { checks: 3 + index * 7 };
    return { ...row, status: 'pass', checks: 0, failures: [], ...usual, ...outcomes[row.id] };
  });
  return {
    kit: { name: 'screenings-conformance-kit', version: '0.1.0' },
    target: { name: 'Acme screenings 2.3', baseUrl: BASE_URL, authUrl: 'https://auth.acme.example' },
    startedAt: '2026-04-01T09:30:00Z',
    durationMs: 125_400,
    requests: 2871,
    seed: 42,
    verdict: 'non-conformant',
    summary: '2 requirements of the specification are broken.',
    diagnosis: [
      {
        root: '4.2-to-exclusive',
        findings: ['4.2-to-exclusive', '4.2-window'],
        behavesLike: [
          { name: 'to compared with <=', why: 'an inclusive end', remedy: 'compare with <, not with <=' },
        ],
      },
    ],
    coverage: {
      deepestWalk: 12_000,
      widestWindow: '2024-01-01T00:00:00Z/2026-01-01T00:00:00Z',
      largestFullPage: 1000,
    },
    classes: {
      ...{ core: 'exercised', isolation: 'exercised', provisioning: 'exercised', 'rate-limit': 'partly' },
      ...{ expiry: 'untested', failure: 'untested', events: 'untested' },
    },
    evidence: {
      ...{ planned: 214, executed: 209 },
      seen: { items: 18_240, longestWalkPages: 91 },
      laws: { 'two page sizes give the same traversal': 100 },
      notLookedAt: [{ rules: ['no from', 'no to'], circumstances: ['as the second tenant'] }],
    },
    observations: [
      { topic: 'head', question: 'How is `HEAD` answered?', seen: ['200', '400 invalid_request'] },
    ],
    replay: 'npm run certify -- --target target.json --seed 42',
    tokenCommands: ['TOKEN=$(curl -sS -d client_id=acme https://auth.acme.example/oauth/token)'],
    requirements,
    ...changes,
  };
}

export const conformantReport = (): Report =>
  sampleReport({}, { verdict: 'conformant', summary: 'Every core MUST holds, and no other is broken.' });

/** An unreachable target: one basis, and everything untested because of it. */
export function incompleteReport(): Report {
  const basis = 'no connection to https://auth.acme.example (ECONNREFUSED)';
  const untested: Outcome = { status: 'untested', checks: 0, reason: basis };
  return sampleReport(Object.fromEntries(REQUIREMENTS.map(({ id }) => [id, untested])), {
    verdict: 'incomplete',
    summary: 'Nothing could be tested: start the target, or correct authUrl.',
    basis,
    selection: REQUIREMENTS.map(({ id }) => id).filter((id) => id.startsWith('4.2-') || id === '5-missing'),
    observations: [],
    requests: 1,
    durationMs: 38,
    classes: Object.fromEntries(CLASSES.map((name) => [name, 'untested'])) as Report['classes'],
    evidence: { planned: 214, executed: 0, seen: {}, laws: {}, notLookedAt: [] },
  });
}

/** A report with `text` in place of every text that a target can influence. */
export function hostileReport(text: string): Report {
  const told = { message: text, expected: text, received: text };
  const evidence = { ...told, request: text, response: text, curl: text };
  const counterexample = { law: text, script: [text, text], path: text, walk: text };
  return sampleReport(
    {
      '4.2-window': {
        status: 'fail',
        failures: [{ ...evidence, counterexample, confirmed: text, count: 2 }],
      },
      '4.1-post-only': { status: 'warn', failures: [evidence] },
      '4.2-r4-order': { status: 'untested', reason: text },
      '5-missing': { status: 'error', reason: text },
    },
    {
      target: { name: text, baseUrl: text, authUrl: text },
      summary: text,
      basis: text,
      selection: [text, '4.2-r4-order'],
      observations: [{ topic: text, question: text, seen: [text] }],
      evidence: { planned: 1, executed: 1, seen: { [text]: 1 }, laws: { [text]: 1 }, notLookedAt: [] },
      replay: `npm run certify -- --base-url ${text.slice(0, 200)}`,
      tokenCommands: [text],
      diagnosis: [
        { root: '4.2-window', findings: [], behavesLike: [{ name: text, why: text, remedy: text }] },
      ],
    },
  );
}

export const renderingsOf = (results: Results): Readonly<Record<'terminal' | Format, string>> => {
  const files = Object.entries(RENDERINGS).map(([format, render]) => [format, render(results)]);
  const text = terminal(results, { color: false, columns: 140 });
  return { terminal: text, ...(Object.fromEntries(files) as Record<Format, string>) };
};

/** A report on a client, with `text` in place of every text that it can influence. */
export const clientResults = (text = 'my-client'): Results =>
  resultsOfClient({
    verdict: 'non-conformant',
    summary: 'The client broke a MUST in 503-for-ever.',
    kit: { name: 'kit', version: '1' },
    client: text,
    startedAt: '2026-03-01T00:00:00.000Z',
    durationMs: 4_000,
    situations: [
      {
        ...{ name: '503-for-ever', section: '7.2', level: 'MUST', status: 'fail', durationMs: 900 },
        title: 'where 503 does not end, the client gives up in bounded time',
        lookAt: ['the number of retries: bounded'],
        failures: [
          {
            ...{ message: 'expected an end, got none', expected: 'an end', received: `none: ${text}` },
            requests: [`at 0.100 s  503 (token 1)  GET ${PAGE}`],
          },
        ],
        timeline: [
          { atMs: 10, tookMs: 5, channel: 'token', request: 'POST /oauth/token', status: 200 },
          { atMs: 20, tookMs: 5, channel: 'pages', request: `GET ${PAGE}`, status: 503, token: 1 },
          { atMs: 90, channel: 'pages', request: `GET ${text}`, status: 0, token: 1 },
        ],
      },
      {
        ...{ name: 'scope-subset', section: '5.7', level: 'MUST', status: 'untested', durationMs: 10 },
        ...{ title: 'fewer scopes are no error', reason: 'the client asks for one scope only' },
        ...{ lookAt: [], failures: [], timeline: [] },
      },
    ],
  });
