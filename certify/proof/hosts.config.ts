/** Playwright configuration that runs the specs against many targets, one project each; used by hosts.process.test.ts. */
import { defineConfig } from '@playwright/test';

process.env['SCREENINGS_HOST'] = 'playwright';

export interface HostedTarget {
  readonly name: string;
  readonly file: string;
  /** Selects tests, as a regular expression over titles and tags. */
  readonly grep: string;
}

const targets = JSON.parse(process.env['HOSTED_TARGETS'] ?? '[]') as HostedTarget[];

export default defineConfig<object, { targetFile: string | undefined }>({
  testDir: '../..',
  testMatch: 'specs/*.spec.ts',
  testIgnore: ['**/node_modules/**'],
  outputDir: '../../test-results/hosts',
  workers: 1,
  timeout: 0,
  reporter: 'json',
  projects: targets.map(({ name, file, grep }) => ({
    name,
    grep: new RegExp(grep),
    use: { targetFile: file },
  })),
});
