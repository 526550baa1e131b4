/** All renderings agree, and hostile text from a target stays text. */
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect } from '@playwright/test';
import { SaxesParser } from 'saxes';
import { pictureOfWalk } from '../../engine/checks/walk-picture.ts';
import type { Exchange } from '../../engine/client/exchange.ts';
import { answerTo, getOf } from '../../engine/testing.ts';
import { instant } from '../../engine/data/instant.ts';
import { REQUIREMENTS } from '../../engine/requirements.ts';
import { fc } from '../../fixtures/own-tests/tiers.ts';
import type { Report } from '../report/report.ts';
import { changesText, classesText, replayCommand, resultsOf, selected } from './service-results.ts';
import { counts, countsText, durationText, sectionTitle, untestedByReason } from './results.ts';
import { walkLines } from './pictures.ts';
import { clip, visible } from './markup.ts';
import {
  clientResults,
  conformantReport,
  hostileReport,
  incompleteReport,
  renderingsOf,
  sampleReport,
} from './sample.testing.ts';
import { COLOURS } from './style.ts';
import { terminal } from './terminal.ts';
import { prepareDirectory } from '../../engine/files.ts';
import { end, writeReport } from './write.ts';
import { test } from '../../reference-server/testing.ts';

interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
}

function elements(xml: string): readonly Element[] {
  const found: Element[] = [];
  const parser = new SaxesParser();
  parser.on('opentag', ({ name, attributes }) => found.push({ name, attributes }));
  parser.on('error', (error) => {
    throw error;
  });
  parser.write(xml).close();
  return found;
}

const properties = (junit: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    elements(junit)
      .filter(({ name }) => name === 'property')
      .map(({ attributes }) => [attributes['name']!, attributes['value']!]),
  );

const REPORTS: Readonly<Record<string, Report>> = {
  'non-conformant': sampleReport(),
  conformant: conformantReport(),
  incomplete: incompleteReport(),
};

const HOSTILE: Readonly<Record<string, string>> = {
  HTML: '<script>alert(1)</script><img src=x onerror=alert(1)>"\'&amp;',
  'XML that ends early': ']]></failure></testsuites><!-- &undefined; <?pi?>',
  'control characters': '\u0000\u0001\b\u000b\u001b[2J\u001b]0;title\u0007\u007f\u009b31m',
  'deceiving characters': '\u202emoc.elpmaxe\u2066 \u200b\u2028 \ufeff',
  'broken Unicode': '\ud800 \udc00 \ufffe \uffff',
  Markdown:
    '``` \n# heading | cell | [link](http://evil.example) ![i](http://evil.example) ~~~ <b> @team $x$',
  'very long': 'long words '.repeat(50_000),
  'one very long word': 'x'.repeat(500_000),
  empty: '',
};

for (const [name, report] of Object.entries(REPORTS)) {
  test(`all renderings agree on verdict, counts, classes and run: ${name}`, () => {
    const { verdict } = report;
    const words = countsText(selected(report));
    const { terminal, html, junit, summary, badge } = renderingsOf(resultsOf(report));
    expect(terminal).toContain(`${verdict.toUpperCase()}  ${report.target.name}`);
    expect(html).toMatch(new RegExp(`class="badge \\w+">${verdict}<`, 'i'));
    expect(summary).toContain(`**${verdict}**`);
    expect(badge).toContain(`>${verdict}${report.selection ? ' (selection)' : ''}</text>`);
    expect(properties(junit)).toMatchObject({ verdict, counts: words, classes: classesText(report) });
    for (const rendering of [terminal, html, summary, badge]) expect(rendering).toContain(words);
    expect(terminal).toContain(classesText(report));
    for (const rendering of [terminal, html, summary]) {
      expect(rendering).toContain(report.summary);
      expect(rendering).toContain(durationText(report.durationMs));
      if (report.selection) expect(rendering).toContain('the verdict covers only this selection');
    }
  });

  test(`junit.xml has one test case per requirement, and correct totals: ${name}`, () => {
    const found = elements(renderingsOf(resultsOf(report)).junit);
    const cases = found.filter((element) => element.name === 'testcase').map(({ attributes }) => attributes);
    const named = cases.map(({ name, classname }) => `${classname}: ${name}`);
    expect(named).toEqual([
      ...(report.verdict === 'incomplete' ? ['verdict: the run is complete'] : []),
      ...selected(report).map(
        ({ id, section }) => `${section.replace('.', '-')} ${sectionTitle(section)}: ${id}`,
      ),
    ]);
    // Viewers split a class name at its last dot, and need a duration.
    for (const { classname, time } of cases) {
      expect(classname).not.toContain('.');
      expect(time).toMatch(/^\d+\.\d{3}$/);
    }
    const tally = (tag: string) => String(found.filter((element) => element.name === tag).length);
    for (const { attributes } of found.filter((element) => element.name.startsWith('testsuite')))
      expect(attributes).toMatchObject({
        tests: tally('testcase'),
        failures: tally('failure'),
        errors: tally('error'),
        skipped: tally('skipped'),
      });

    expect(tally('system-out')).toBe(String(counts(selected(report)).warn));
  });
}

test('all renderings agree on what changed, on known failures, and on where a walk breaks', () => {
  const item = (id: string, mark?: 'missing') => ({ id, testTime: `2026-03-29T00:00:${id}Z`, mark });
  const picture = {
    pages: [
      { page: 1, items: [item('11')], before: 2, after: 0 },
      { page: 2, items: [item('13')], before: 0, after: 1 },
    ],
    cursor: 'from=2026-03-29T00:00:11Z&from_id=11',
    between: [item('12', 'missing')],
  };
  const { requirements, ...rest } = sampleReport();
  const report: Report = {
    ...rest,
    requirements: requirements.map((result) => ({
      ...result,
      failures: result.failures.map((failure) => ({ ...failure, picture })),
    })),
    changes: {
      since: '2026-03-31T09:30:00Z',
      sameTarget: false,
      newlyFailing: ['4.2-to-exclusive'],
      newlyPassing: ['2.1-scope'],
      noLongerExercised: ['6-envelope', '6-complete'],
      changedObservations: ['head: 200 before, now 405'],
    },
    knownFailures: [
      { id: '4.2-window', reason: 'mended in June', expires: '2026-12-31', stand: 'failing' },
      { id: '2.1-scope', reason: 'mended in May', expires: '2026-12-31', stand: 'passes again' },
      { id: '5-missing', reason: 'a gateway', expires: '2026-01-01', stand: 'expired' },
    ],
  };
  const plain = (text: string): string => text.replace(/\\(?=[^\w\s])/g, '').replace(/\s+/g, ' ');
  const { terminal, html, summary, junit } = renderingsOf(resultsOf(report));
  const texts = [terminal, html, summary].map(plain);
  expect(changesText(report)).toHaveLength(8);
  for (const [label, words] of changesText(report)) {
    expect(properties(junit)[label]).toBe(words);
    for (const text of texts) expect(text.toLowerCase()).toContain(label);
    for (const word of words.split(/[\s;]+/)) for (const text of texts) expect(text).toContain(word);
  }
  const broken = plain(junit);
  for (const line of walkLines(picture))
    for (const text of [...texts, broken]) expect(text.replace(/&amp;/g, '&')).toContain(line);
});

for (const [name, text] of Object.entries(HOSTILE))
  test(`hostile text stays text: ${name}`, () => {
    const report = renderingsOf(resultsOf(hostileReport(text)));
    const { html, junit, summary, badge } = report;
    const client = renderingsOf(clientResults(text));
    for (const rendering of [report, client].flatMap(Object.values<string>)) {
      expect(rendering).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
      expect(rendering.length).toBeLessThan(900_000);
    }
    elements(junit);
    elements(badge);
    for (const rendering of [html, junit, client.html, client.junit])
      expect(rendering).not.toMatch(/<script>alert|<img|<b>/);
    for (const page of [html, client.html]) {
      expect(page).toContain('default-src &#39;none&#39;');
      for (const [, url] of page.matchAll(/\shref="([^"]*)"/g)) expect(url).toMatch(/^(#|data:)/);
    }
    expect(summary.replace(/^(`{3,})text\n[^]*?\n\1$/gm, '')).not.toMatch(
      /<(?!\/?code>)\w|(?<!\\)\]\(|:\/\/|^# heading/m,
    );
  });

test('XML stays well-formed for any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 30 }), (text) => {
      const { junit, badge } = renderingsOf(resultsOf(hostileReport(text)));
      elements(junit);
      elements(badge);
    }),
    { numRuns: 15 },
  );
});

test('terminal lines fit the width, except commands and long words', () => {
  for (const columns of [undefined, 40, 60, 80, 100]) {
    const width = columns ?? 80;
    const texts = [resultsOf(sampleReport()), clientResults()].map((results) =>
      terminal(results, { color: false, columns }),
    );
    const isWhole = (line: string): boolean =>
      /^ {2}(curl|replay|token|walk|explain) /.test(line) || new RegExp(`\\S{${width - 11},}`).test(line);
    const lines = texts.join('\n').split('\n');
    expect(lines.filter((line) => line.length > width && !isWhole(line))).toEqual([]);
  }
});

test('prints a failure as sent, expected, received, look at, replay, curl', () => {
  const text = terminal(resultsOf(sampleReport()), { color: false });
  const block = text.split('\n\n')[0]!;
  expect(block).toMatch(/^4\.2-to-exclusive {2}MUST {2}An item .* §4\.2\n/);
  const labels = block.split('\n').map((line) => line.slice(2, 12).trim());
  expect(labels.slice(1).filter(Boolean).join(', ')).toBe(
    'sent, expected, received, answer, confirmed, look at, replay, curl',
  );
  expect(block).toContain('  received    item 4711 at 2026-03-29T01:30:00+01:00 (the same instant)\n');
});

test('uses colour on request, and never with NO_COLOR', () => {
  const before = { ...process.env };
  const text = (env: NodeJS.ProcessEnv): string => {
    process.env = { ...before, NO_COLOR: '', FORCE_COLOR: '', ...env };
    return terminal(resultsOf(sampleReport()));
  };
  try {
    expect(text({ NO_COLOR: '1', CI: 'true' })).not.toContain('\u001b');
    expect(text({ FORCE_COLOR: '1' })).toContain('\u001b[31m');
  } finally {
    process.env = before;
  }
});

test('a report on a client: counts, what was expected, where to look, and each picture in words', () => {
  const { terminal, html, junit } = renderingsOf(clientResults());
  expect(terminal).toContain('expected    an end');
  expect(terminal).toContain('look at     the number of retries: bounded');
  expect(terminal).toContain('1 failed, 1 untested (of 2 situations)');
  const names = elements(junit).map(({ name }) => name);
  expect(names.filter((name) => name === 'testcase')).toHaveLength(2);
  expect(names).toEqual(expect.arrayContaining(['failure', 'skipped']));
  const words =
    '3 requests in 90 ms: 1 for token answered 200, 1 for pages answered 503, 1 for pages broke off';
  expect(html).toContain(`role="img" aria-label="${words}"`);
  expect(html.match(/<rect class="(pass|warn|fail)" x="\d+\.\d"/g)).toHaveLength(3);
});

test('the replay command selects one requirement and keeps the seed', () => {
  const report = (replay: string) => ({ ...sampleReport(), replay });
  for (const [replay, command] of [
    ['npm run certify -- --seed 7', 'npm run certify -- --seed 7 --only 5-missing'],
    ['npm run certify', 'npm run certify -- --seed 42 --only 5-missing'],
    ['npm run certify -- --only 4.2,5 --seed 7', 'npm run certify -- --seed 7 --only 5-missing'],
  ] as const)
    expect(replayCommand(report(replay), '5-missing')).toBe(command);
});

test('a selection names whole sections by number, and ignores requirements outside it', () => {
  const section = REQUIREMENTS.filter((row) => row.section === '7.2').map(({ id }) => id);
  const report = { ...sampleReport(), selection: [...section, '5-expired'] };
  const results = resultsOf(report);
  expect(results.remarks.join()).toContain('limited to 5-expired, 7.2:');
  const untested = untestedByReason(results).flatMap(({ ids }) => ids);
  expect(untested).toEqual(['5-expired', '7.2-server-error']);
});

test('formats durations and cuts long texts', () => {
  expect([0, 999, 1000, 59_940, 59_990, 125_400, 3_599_900, 3_840_000].map(durationText).join(', ')).toBe(
    '0 ms, 999 ms, 1.0 s, 59.9 s, 1 min 0 s, 2 min 5 s, 1 h 0 min, 1 h 4 min',
  );
  expect(clip('abcdef', 6)).toBe('abcdef');
  expect(clip('abcdefg', 3)).toBe('abcdefg');
  expect(clip('abc'.repeat(10), 3)).toBe('abc… (27 more characters)');
  expect(visible('a\r\nb\tc\u001b')).toBe('a\nb\tc\\u{1b}');
});

const FILES = Object.values(resultsOf(sampleReport()).files);

test('writes all files completely, report.json first, and leaves no other file', async () => {
  const directory = test.info().outputPath();
  const nested = join(directory, 'a', 'b');
  for (const report of [sampleReport(), conformantReport()]) {
    expect(await writeReport(report, nested)).toEqual(FILES.map((file) => join(nested, file)));
    expect(JSON.parse(await readFile(join(nested, 'report.json'), 'utf8'))).toEqual(report);
  }
  expect((await readdir(nested)).sort()).toEqual([...FILES].sort());
});

test('writes the other files if one rendering fails', async () => {
  const directory = test.info().outputPath();
  await mkdir(join(directory, 'report.html'));
  await expect(writeReport(sampleReport(), directory)).rejects.toThrow('report.html could not be written');
  expect((await readdir(directory)).sort()).toEqual([...FILES].sort());
});

test('a run whose report cannot be written never exits with 0', async () => {
  for (const [report, usual] of [
    [conformantReport(), undefined],
    [sampleReport({}), 0],
  ] as const)
    expect(
      await end(resultsOf(report), {
        ...{ name: 'certify', reportDir: '.', usual, output: new PassThrough() as never },
        write: () => Promise.reject(new Error('no space')),
      }),
    ).toBe(4);
});

function contrast(one: string, other: string): number {
  const luminance = (colour: string) => {
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const channel = parseInt(colour.slice(at, at + 2), 16) / 255;
      return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
    }) as [number, number, number];
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [lighter, darker] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (lighter + 0.05) / (darker + 0.05);
}

test('rejects a folder that cannot be created', async () => {
  for (const folder of ['/proc/no/such/folder', join(import.meta.filename, 'reports')])
    await expect(prepareDirectory(folder, '--history')).rejects.toThrow(/can't be written.* with --history$/);
});

for (const scheme of ['light', 'dark'] as const)
  test(`every text colour has enough contrast on every ${scheme} background`, () => {
    const at = scheme === 'light' ? 0 : 1;
    const { page, surface, code, border: _, ...texts } = COLOURS;
    for (const [name, colours] of Object.entries(texts))
      for (const background of [page, surface, code])
        expect(contrast(colours[at], background[at]), `${name} on ${background[at]}`).toBeGreaterThanOrEqual(
          4.5,
        );
  });

// -- the picture of a broken walk: its marks and its lines -------------------------------------------

const BASE = 'http://127.0.0.1/v1/tenants/7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01/screenings';
const at = (id: number): string => `2026-03-01T00:00:${String(Math.floor(id / 10)).padStart(2, '0')}Z`;

/** Pages with these ids; ids of the same decade tie. */
const walked = (...pages: readonly (readonly number[])[]): Exchange[] =>
  pages.map((ids, index) => {
    const last = ids.at(-1) ?? 0;
    const next = index + 1 < pages.length ? { next: `${BASE}?from=${at(last)}&from_id=${last}` } : {};
    const items = ids.map((id) => ({ id, tenantId: 't', testTime: at(id) }));
    return answerTo(getOf(BASE), JSON.stringify({ items, links: next }));
  });

const known = (...ids: readonly number[]) =>
  ids.map((id) => ({ id: BigInt(id), testTime: at(id), at: instant(at(id)), firstSeen: 0, firstSeenMs: 0 }));

test('a walk without a break has no picture', () => {
  expect(pictureOfWalk(walked([10, 11], [12, 20]), known(10, 11, 12, 20))).toBeUndefined();
});

test('marks a repeated item on both pages', () => {
  const picture = pictureOfWalk(walked([1, 2, 3, 4, 5, 10, 11], [11, 12], [13]))!;
  expect(picture.pages.map(({ page, before }) => [page, before])).toEqual([
    [1, 3],
    [2, 0],
  ]);
  expect(picture.pages.map(({ items }) => items.filter(({ mark }) => mark).map(({ id }) => id))).toEqual([
    ['11'],
    ['11'],
  ]);
  expect(picture.cursor).toBe(`from=${at(11)} from_id=11`);
  expect(walkLines(picture).slice(-4)).toEqual([
    `→ from=${at(11)} from_id=11`,
    'page 2',
    `✗ 11 at ${at(11)} comes again`,
    `· 12 at ${at(12)}`,
  ]);
});

test('draws a lost item between the pages or within its page', () => {
  const between = pictureOfWalk(walked([10, 11], [20, 21]), known(10, 11, 12, 20, 21))!;
  expect(between.between).toEqual([{ id: '12', testTime: at(12), mark: 'missing' }]);
  expect(between.pages.map(({ page }) => page)).toEqual([1, 2]);
  const within = pictureOfWalk(walked([10, 12], [20]), known(10, 11, 12, 20))!;
  expect(within.pages).toHaveLength(1);
  expect(within.pages[0]!.items.map(({ id, mark }) => `${id} ${mark ?? ''}`)).toEqual([
    '10 ',
    '11 missing',
    '12 ',
  ]);
  expect(pictureOfWalk(walked([]), known(1))!.pages[0]!.items).toHaveLength(1);
});

test('marks an item out of order', () => {
  const picture = pictureOfWalk(walked([10, 20], [15, 30]))!;
  expect(picture.pages[1]!.items[0]).toMatchObject({ id: '15', mark: 'misplaced' });
});
