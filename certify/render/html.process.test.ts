/** report.html in a browser. */
import { writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { chromium, expect } from '@playwright/test';
import type { Browser, BrowserContextOptions, Page } from '@playwright/test';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { REQUIREMENTS } from '../../engine/requirements.ts';
import type { Report } from '../report/report.ts';
import { replayCommand, resultsOf } from './service-results.ts';
import { counts } from './results.ts';
import { html } from './html.ts';
import { hostileReport, sampleReport } from './sample.testing.ts';
import { existsSync } from 'node:fs';
import { test } from '../../reference-server/testing.ts';

/** Chromium: `CHROMIUM_PATH`, the system's, or the one installed by Playwright. */
const executablePath = [process.env['CHROMIUM_PATH'], '/usr/bin/chromium', chromium.executablePath()].find(
  (path) => path && existsSync(path),
);

test.skip(
  !executablePath,
  'no Chromium: set CHROMIUM_PATH, or install one (npx playwright install chromium)',
);

let browser: Browser;

test.beforeAll(async () => {
  // Containers run as root and without a GPU; the other flags disable Chromium's background requests.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
  browser = await chromium.launch({ executablePath, args });
});
test.afterAll(async () => {
  await browser?.close();
});

/** Opens the report; `mismatches` collects console messages and all requests except that for the page. */
async function open(
  report: Report,
  { hash = '', ...options }: BrowserContextOptions & { hash?: string } = {},
): Promise<{ page: Page; mismatches: readonly string[] } & AsyncDisposable> {
  const path = test.info().outputPath('report.html');
  await writeFile(path, html(resultsOf(report)));
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const mismatches: string[] = [];
  page.on('console', (message) => mismatches.push(message.text()));
  page.on('pageerror', (error) => mismatches.push(error.message));
  page.on('dialog', (dialog) => mismatches.push(dialog.message()));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith('data:') && !url.startsWith(pathToFileURL(path).href)) mismatches.push(url);
  });
  await page.goto(pathToFileURL(path).href + hash);
  return { page, mismatches, [Symbol.asyncDispose]: () => context.close() };
}

const rows = (page: Page) => page.locator('details.requirement:visible');

test('shows the verdict and every requirement in order, without console messages or requests', async () => {
  const report = sampleReport();
  await using opened = await open(report);
  await expect(opened.page.getByRole('heading', { level: 1 })).toHaveText(report.target.name);
  await expect(opened.page.locator('.badge')).toHaveText('Non-conformant');
  const ids = await rows(opened.page).evaluateAll((found) => found.map(({ id }) => id));
  expect(ids).toEqual(REQUIREMENTS.map(({ id }) => id));
  expect(opened.mismatches).toEqual([]);
});

test('filters by status, section, class and text, and resets', async () => {
  const report = sampleReport();
  const counted = counts(report.requirements);
  await using opened = await open(report);
  const { page } = opened;
  const passed = page.getByRole('checkbox', { name: 'pass' });
  await passed.uncheck();
  await expect(rows(page)).toHaveCount(report.requirements.length - counted.pass);
  await expect(page.getByRole('status')).toContainText(`of ${report.requirements.length} requirements`);
  await page.getByRole('combobox', { name: 'Section' }).selectOption('4.2');
  await expect(rows(page)).toHaveCount(3);
  await expect(page.getByRole('heading', { name: '2.1 Token response' })).toBeHidden();
  await page.getByRole('button', { name: 'Reset' }).click();
  await expect(rows(page)).toHaveCount(report.requirements.length);
  await page.getByRole('combobox', { name: 'Class' }).selectOption('events');
  await expect(rows(page)).toHaveCount(3);
  await page.getByRole('searchbox', { name: 'Text' }).fill('ENVELOPE');
  await expect(rows(page)).toHaveCount(1);
  expect(opened.mismatches).toEqual([]);
});

test('an anchor opens its requirement, also one that a filter hides', byTurns('an anchor', 2), async () => {
  await using opened = await open(sampleReport(), { hash: '#4.2-window' });
  const { page } = opened;
  await expect(page.locator('details[id="4.2-window"]')).toHaveAttribute('open', '');
  await page.getByRole('checkbox', { name: 'fail' }).uncheck();
  await expect(page.locator('details[id="4.2-to-exclusive"]')).toBeHidden();
  await page.locator('main a[href="#4.2-to-exclusive"]').first().click();
  await expect(page.locator('details[id="4.2-to-exclusive"] > summary')).toBeInViewport();
  expect(opened.mismatches).toEqual([]);
});

test('every anchor has a target, and every id is unique', byTurns('every anchor', 2), async () => {
  await using opened = await open(sampleReport());
  const ids = await opened.page.locator('[id]').evaluateAll((found) => found.map(({ id }) => id));
  expect(new Set(ids).size).toBe(ids.length);
  const targets = await opened.page
    .locator('a')
    .evaluateAll((found) => found.map((link) => link.getAttribute('href')));
  for (const target of targets) expect(ids.map((id) => `#${id}`)).toContain(target);
});

test('copies a command unchanged', byTurns('copies a', 2), async () => {
  const report = sampleReport();
  await using opened = await open(report, { permissions: ['clipboard-read', 'clipboard-write'] });
  const { page } = opened;
  const row = page.locator('details[id="4.2-to-exclusive"]');
  for (const [name, text] of [
    ['Copy replay', replayCommand(report, '4.2-to-exclusive')],
    ['Copy curl', report.requirements.find(({ id }) => id === '4.2-to-exclusive')!.failures[0]!.curl],
  ] as const) {
    const button = row.getByRole('button', { name });
    await button.click();
    await expect(button).toHaveText('Copied');
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(text);
  }
});

test(
  'without scripts: lists all, opens failures, has no dead controls',
  byTurns('is usable', 2),
  async () => {
    await using opened = await open(sampleReport(), { javaScriptEnabled: false });
    await expect(rows(opened.page)).toHaveCount(REQUIREMENTS.length);
    await expect(opened.page.getByText('item 4711 at', { exact: false }).last()).toBeVisible();
    await expect(opened.page.locator('#filters')).toBeHidden();
    await expect(opened.page.locator('.copy:visible')).toHaveCount(0);
  },
);

test('fits a phone', byTurns('phone', 2), async () => {
  await using opened = await open(hostileReport('unbreakable'.repeat(40)), {
    viewport: { width: 360, height: 740 },
  });
  await opened.page.getByRole('button', { name: 'Open all' }).click();
  expect(await opened.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
});

test('hostile text executes, loads and hides nothing', async () => {
  const texts = [
    '</script><script>alert(1)</script><img src=x onerror=alert(1)>',
    '"><svg onload=alert(1)><style>@import "https://evil.example/x.css"</style>',
    "'><iframe src='https://evil.example/'></iframe><!--<![CDATA[",
  ];
  for (const text of texts) {
    await using opened = await open(hostileReport(text));
    await expect(opened.page.getByRole('heading', { level: 1 })).toHaveText(text);
    await expect(rows(opened.page)).toHaveCount(1);
    await expect(opened.page.locator('img, iframe, [onload], [onerror]')).toHaveCount(0);
    expect(opened.mismatches).toEqual([]);
  }
});
