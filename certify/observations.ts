/** The questions that the specification leaves open, and the behaviour observed for each. */
import type { Ledger } from '../engine/run/state/ledger.ts';
import type { Observation } from './report.ts';

const QUESTIONS: Readonly<Record<string, string>> = {
  'missing-from-code': 'Which code does a request without `from` get?',
  'missing-to-code': 'Which code does a request without `to` get?',
  dialects: 'Which dialects of clients were spoken?',
  http2: 'HTTP/2 is offered and gave no answer, where HTTP/1.1 did: what was said of it?',
  'default-page-items': 'How many items does a page without pageSize hold?',
  'negative-from_id': 'How is a negative from_id answered?',
  'repeated-parameter': 'How is a repeated query parameter answered?',
  'leap-second': 'How is second 60 answered?',
  'path-not-a-uuid': 'How is a path tenant that is no UUID answered?',
  'unknown-tenant': 'How is the path of an unknown tenant answered?',
  'scope-subset': 'What does a request for a known and an unknown scope get?',
  'json-token-request': 'How is a token request in JSON answered?',
  head: 'How is HEAD answered?',
  options: 'How is OPTIONS answered?',
  'trailing-slash': 'How is a slash after the path answered?',
  'encoded-path': 'How is a path with letters percent-encoded answered?',
  'refusal-in-shared-cache': 'Does Cache-Control let shared caches keep a 401?',
  'path-in-another-case': 'How is the own tenant in another case answered?',
  'uuid-in-another-form': 'How is the own tenant in another form of a UUID answered?',
  'unknown-parameter': 'How is an unknown query parameter answered?',
  'raw-plus': 'How is a raw + before an offset answered?',
  lockout: 'When is a client that sends wrong secrets locked out?',
  'next-of-earlier-run': 'How is a next answered that is older than an hour?',
  'get-token': 'How is a GET of the token endpoint answered?',
};

export function observationsOf(ledger: Ledger): Observation[] {
  return [...ledger.observations].map(([topic, seen]) => ({
    topic,
    question: QUESTIONS[topic] ?? topic,
    seen: [...seen].sort(),
  }));
}
