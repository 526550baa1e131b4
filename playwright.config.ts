import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: '.',
  testIgnore: ['**/node_modules/**', '**/reports/**', '**/test-results/**'],
  outputDir: 'test-results',
  workers: 2,
  fullyParallel: false,
  // A test that passes only the second time has found something: it fails.
  retries: 0,
  forbidOnly: Boolean(process.env['CI']),
  timeout: 120_000,
  reporter: [['list'], ['./fixtures/own-tests/closing-line.ts']],
  projects: [
    // The kit's own tests (`npm test`), beside the code that they test.
    { name: 'kit', testMatch: '**/*.test.ts' },
    // The certification (`npm run certify`): one worker, so that all specs share what is known of the target.
    { name: 'certify', testMatch: 'specs/*.spec.ts', timeout: 0 },
  ],
});
