/** Final rejections (section 7.2), and a server with the wrong certificate. */
import { pageRequests, line } from '../record.ts';
import { repeatedRefusals } from '../judge/waits.ts';
import { answered, finding, type SituationRow } from '../situation.ts';
import { several } from '../../render/results.ts';
import { pageStep, refusal, usual } from './steps.ts';

export const refusalSituations: readonly SituationRow[] = [
  ...[400, 403, 404].map((status): SituationRow => ({
    name: `${status}-not-retried`,
    section: '7.2',
    title: `a ${status} is final: the request is not retried, and the client says that it gave up`,
    lookAt: ['which statuses are retried: 5xx, 429, and 401 once', 'the exit status after an error: not 0'],
    stage: () => usual(pageStep(() => () => refusal(status))),
    met: answered(status),
    impossible: true,
    judge: ({ requests }) => {
      const refused = repeatedRefusals(requests, status);
      return refused.length <= 1
        ? []
        : [
            finding(
              `no retry of a request that is answered ${status}`,
              several(refused.length - 1, 'retry', 'retries'),
              refused.slice(0, 8).map(line),
            ),
          ];
    },
  })),
  {
    name: 'tls-trusted',
    section: '4.1',
    optional: true,
    title: 'a server with a certificate in its own name, which the environment trusts, is spoken to over TLS',
    lookAt: [
      'where trust comes from: the kit names its certificates in SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, CURL_CA_BUNDLE and REQUESTS_CA_BUNDLE',
    ],
    stage: () => ({ ...usual(), tlsHost: 'localhost' }),
    givingUp: 'warns',
    unspoken:
      'the client did not take the certificate: it may read none of SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, CURL_CA_BUNDLE and REQUESTS_CA_BUNDLE',
  },
  {
    name: 'tls-another-name',
    section: '4.1',
    optional: true,
    title: 'a server whose certificate is in another name gets neither the secret nor any other request',
    lookAt: ['options that switch off the check of certificates or of the name in them'],
    stage: () => ({ ...usual(), tlsHost: '127.0.0.1' }),
    needs: 'tls-trusted',
    impossible: true,
    judge: ({ requests }) =>
      requests.length === 0
        ? []
        : [
            finding(
              'no request to a server whose certificate is in another name',
              `${several(requests.length, 'request')}${pageRequests(requests).length > 0 ? ', pages among them' : ''}`,
              requests.slice(0, 4).map(line),
            ),
          ],
  },
];
