/** A rule is not judged in a combination that the target does not serve even without the rule's alteration. */
import { expect } from '@playwright/test';
import { certify } from './certify.ts';
import { targetFor } from './proof/faults.ts';
import { startInProcess, test } from '../reference-server/faults/testing.ts';
import { errorAnswer } from '../reference-server/http/http.ts';
import { instead, queryOf } from '../reference-server/run/alter.ts';

test('reports a rule as untested if its combinations are not served', async ({ small }) => {
  const server = instead((request) =>
    /\.\d{9}/.test(queryOf(request).get('from') ?? '')
      ? errorAnswer(400, 'invalid_time_range', 'more than six digits')
      : undefined,
  );
  await using started = await startInProcess(small, server);
  const { requirements } = await certify(await targetFor(started, 'bare'), {
    only: ['7.2-page_size_out_of_range'],
    seed: 1,
    runs: 2,
    dispatcher: started.dispatcher,
  });
  const rule = requirements.find(({ id }) => id === '7.2-page_size_out_of_range');
  expect(rule).toMatchObject({
    status: 'untested',
    reason: expect.stringMatching(/of its \d+ combinations were not answered 200/),
  });
});
