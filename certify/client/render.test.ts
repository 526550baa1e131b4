/** The renderings of a client's report say the same, stay within their width, and survive what a client prints. */
import { expect, test } from '@playwright/test';
import { SaxesParser } from 'saxes';
import { launchChromium, whyNoBrowser } from '../render/chromium.testing.ts';
import type { ClientReport } from './report.ts';
import { html } from '../render/html.ts';
import { junit } from '../render/junit.ts';
import { terminal } from '../render/terminal.ts';
import { inWords } from '../render/timeline.ts';
import { resultsOf } from './results.ts';

const HOSTILE = `</script><img src=x onerror=alert(1)>"'&\u202e`;
const URL =
  '/v1/tenants/5f0c9a52-7c1e-4e0b-9d3a-2b6d8e4f1a07/screenings?from=2026-03-02T08%3A09%3A00Z&from_id=2222';

const report: ClientReport = {
  verdict: 'non-conformant',
  summary: 'It broke a MUST in 503-for-ever.',
  kit: { name: 'kit', version: '1' },
  client: `my-client ${HOSTILE}`,
  startedAt: '2026-03-01T00:00:00.000Z',
  durationMs: 4_000,
  situations: [
    {
      name: '503-for-ever',
      section: '7.2',
      level: 'MUST',
      title: 'where 503 does not end, the client gives up in bounded time',
      status: 'fail',
      lookAt: ['the number of retries: bounded'],
      failures: [
        {
          message: 'expected an end, got none',
          expected: 'an end',
          received: `none: ${HOSTILE}`,
          requests: [`at 0.100 s  503 (token 1)  GET ${URL}`],
        },
      ],
      durationMs: 900,
      timeline: [
        { atMs: 10, tookMs: 5, channel: 'token', request: 'POST /oauth/token', status: 200 },
        { atMs: 20, tookMs: 5, channel: 'pages', request: `GET ${URL}`, status: 503, token: 1 },
        { atMs: 90, channel: 'pages', request: `GET ${HOSTILE}`, status: 0, token: 1 },
      ],
    },
    {
      name: 'scope-subset',
      section: '5.7',
      level: 'MUST',
      title: 'fewer scopes are no error',
      status: 'untested',
      reason: 'the client asks for one scope only',
      lookAt: [],
      failures: [],
      durationMs: 10,
      timeline: [],
    },
  ],
};

test('the terminal: 80 columns, what was expected and received, where to look', () => {
  const text = terminal(resultsOf(report), { columns: 80, color: false, reportPath: 'reports/client.html' });
  expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
  expect(text).toContain('expected    an end');
  expect(text).toContain('look at     the number of retries: bounded');
  expect(text).toContain('1 failed, 1 untested (of 2 situations)');
});

test('junit.xml is well-formed, with one case a situation', () => {
  const parser = new SaxesParser();
  const names: string[] = [];
  parser.on('opentag', ({ name }) => names.push(name));
  parser.write(junit(resultsOf(report))).close();
  expect(names.filter((name) => name === 'testcase')).toHaveLength(2);
  expect(names).toEqual(expect.arrayContaining(['failure', 'skipped']));
});

test('the picture has words for who does not see it', () => {
  expect(inWords(report.situations[0]!.timeline!)).toBe(
    '3 requests in 90 ms: 1 for token answered 200, 1 for pages answered 503, 1 for pages broke off',
  );
});

test('the page in a browser: nothing of a client runs, each picture is there with its words', async () => {
  const why = whyNoBrowser();
  test.skip(why !== undefined, why);
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('dialog', (dialog) => complaints.push(dialog.message()));
    await page.setContent(html(resultsOf(report)));
    const picture = page.getByRole('img', { name: /^3 requests in 90 ms/ });
    expect(await picture.locator('rect').count()).toBe(3);
    expect(await page.locator('details[open]').count()).toBe(1);
    expect(complaints).toEqual([]);
  } finally {
    await browser.close();
  }
});
