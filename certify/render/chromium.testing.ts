/** A browser for tests of HTML pages. */
import { existsSync } from 'node:fs';
import { chromium, type Browser } from '@playwright/test';

/** The path of Chromium: `CHROMIUM_PATH`, the system's, or the one installed by Playwright. */
function chromiumPath(): string | undefined {
  const named = process.env['CHROMIUM_PATH'];
  return [named, '/usr/bin/chromium', chromium.executablePath()].find((path) => path && existsSync(path));
}

/** Why browser tests are skipped; undefined if they can run, and in CI, where they must. */
export function whyNoBrowser(): string | undefined {
  if (chromiumPath() || process.env['CI']) return undefined;
  return 'no Chromium: set CHROMIUM_PATH, or install one (npx playwright install chromium)';
}

/** Starts Chromium. Rejects if none is installed. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (!executablePath) throw new Error('no Chromium found, and CI must not skip the browser tests');
  // Containers run as root and without a GPU; the other flags disable Chromium's background requests.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
  return chromium.launch({ executablePath, args });
}
