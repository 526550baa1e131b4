/** Section 2.2: the claims of the access token. */
import { about, test } from '../fixtures/test.ts';
import { mintAll } from '../engine/run/rules/raw-request.ts';

test(
  'the token of every client has the documented claims',
  about(
    ['2.2-iss', '2.2-aud', '2.2-sub', '2.2-sub-client', '2.2-iat', '2.2-exp', '2.2-scope', '2.2-tenant_id'],
    { needs: 'token' },
  ),
  ({ kit }) => mintAll(kit),
);
