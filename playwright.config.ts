/**
 * The conformance suites under Playwright: `npx playwright test`, against the reference server or the target file
 * that SCREENINGS_TARGET names. The kit's own tests have a configuration of their own (`npm test`).
 */
import { defineConfig } from '@playwright/test';

process.env['SCREENINGS_HOST'] = 'playwright';

export default defineConfig({
  testDir: '.',
  testMatch: ['specs/*.spec.ts', 'properties/*.spec.ts'],
  testIgnore: ['**/node_modules/**'],
  outputDir: 'test-results',
  globalSetup: './certify/reference.ts',
  // One worker, so that all share what is known of the target; a run is split by `--shard`.
  workers: 1,
  // A test that passes only the second time has found something: it fails.
  retries: 0,
  forbidOnly: Boolean(process.env['CI']),
  timeout: 0,
  reporter: [
    ['list'],
    ['html', { open: 'never', outputFolder: 'reports/playwright' }],
    ['./fixtures/own-tests/closing-line.ts'],
  ],
  projects: [{ name: 'certify' }],
});
