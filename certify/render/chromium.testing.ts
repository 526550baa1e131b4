/** A browser for the tests of the pages that the kit writes. */
import { existsSync } from 'node:fs';
import { chromium, type Browser } from '@playwright/test';

/** Where a Chromium is: `CHROMIUM_PATH`, the system's own, or the one that Playwright installed. */
function chromiumPath(): string | undefined {
  const named = process.env['CHROMIUM_PATH'];
  return [named, '/usr/bin/chromium', chromium.executablePath()].find((path) => path && existsSync(path));
}

/** Why the browser tests have to be skipped; undefined where they can run, and on CI, where they must. */
export function whyNoBrowser(): string | undefined {
  if (chromiumPath() || process.env['CI']) return undefined;
  return 'no Chromium: set CHROMIUM_PATH, or install one (npx playwright install chromium)';
}

/** Starts it. Rejects where none is installed. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (!executablePath) throw new Error('no Chromium found, and CI must not skip the browser tests');
  // Containers run as root and without a GPU; Chromium's own services would call out.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
  return chromium.launch({ executablePath, args });
}
