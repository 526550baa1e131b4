/** Certifies a server with a fault, or a variant, and checks the verdict. */
import { expect } from '@playwright/test';
import { certify, type CertifyOptions } from '../certify.ts';
import type { Report, RequirementResult } from '../report/report.ts';
import { requirement, type RequirementId, selectIds } from '../../engine/requirements.ts';
import { WENT_WRONG } from '../../engine/errors.ts';
import { readDataset } from '../../engine/data/dataset.ts';
import { memoizeLatest } from '../../engine/data/memoize.ts';
import { sayMismatch } from '../../engine/checks/mismatch.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import { fakeClock } from '../../engine/testing.ts';
import { startOn, type Stack, type World } from '../../reference-server/testing.ts';
import type { ReferenceServer, ServerOptions } from '../../reference-server/run/start.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import type { Variant } from '../../reference-server/variants/variant.ts';

/** For a whole run: over items of 260 kB it takes three minutes on an idle machine. */
export const LIMIT_MS = 900_000;

/** full: a complete target file. filled: also a command that fills the scratch tenant. bare: addresses and primary. */
export type Mode = 'full' | 'filled' | 'bare';

export const modesOf = ({ bare }: Fault): readonly Mode[] => (bare === false ? ['full'] : ['full', 'bare']);

/** Without fault commands, which would act on the test process; ingest runs in this process, which is faster. */
export async function targetFor(server: ReferenceServer, mode: Mode): Promise<Target> {
  const { baseUrl, authUrl, name, clients, ca, ...supplied } = server.target();
  const addresses = { name, baseUrl, authUrl, ...(ca ? { ca } : {}) };
  if (mode === 'bare') {
    const { clientId, clientSecret } = clients.primary;
    return resolveTarget({ ...addresses, clients: { primary: { clientId, clientSecret } } });
  }
  const { fault: _, ingest: __, dataset, secondDataset, ...rest } = supplied;
  const target = await resolveTarget({ ...addresses, clients, ...rest });
  return {
    ...target,
    dataset: dataset ? await screeningsOf(dataset) : undefined,
    secondDataset: secondDataset ? await screeningsOf(secondDataset) : undefined,
    ...(mode === 'filled' ? { ingest: (lines) => server.ingest(lines) } : {}),
  };
}

interface ProofOptions extends Omit<CertifyOptions, 'only'> {
  /** Ids, or a text with ids and sections: `2.1 4.2-success`. */
  readonly only?: readonly RequirementId[] | string | undefined;
  readonly change?: ((target: Target) => Target) | undefined;
  /** Default: in process. */
  readonly stack?: Stack;
}

/** Certifies a server. Default: seed 1. */
export async function certifyServer(
  world: World,
  server: ServerOptions | undefined,
  mode: Mode,
  { change = (target) => target, stack = 'in process', only, ...options }: ProofOptions = {},
): Promise<Report> {
  await using started = await startOn(stack, world, server);
  const target = change(await targetFor(started, mode));
  const ids = typeof only === 'string' ? selectIds(only.split(' ')) : only;
  return await certify(target, { seed: 1, dispatcher: started.dispatcher, only: ids, ...options });
}

export const resultOf = ({ requirements }: Report, id: RequirementId): RequirementResult =>
  requirements.find((result) => result.id === id)!;

const messageOf = ({ reason, failures: [first] }: RequirementResult): string =>
  reason ?? first?.message ?? '';

/** `untested: what to supply`, `fail: expected …, got …`, `pass`. */
export function saidOf(report: Report, id: RequirementId): string {
  const result = resultOf(report, id);
  return [result.status, messageOf(result)].filter(Boolean).join(': ');
}

/** The requirements that failed, and those where the kit itself failed, each with its first message. */
export const failedOf = ({ requirements }: Report): string[] =>
  requirements
    .filter(({ status }) => status === 'fail' || status === 'error')
    .map((result) => `${result.id}: ${messageOf(result)}`);

/** Nothing failed, and one line says what would complete the run. */
export function expectIncomplete(report: Report, words: RegExp): void {
  expect([report.verdict, failedOf(report)]).toEqual(['incomplete', []]);
  expect(report.summary).toMatch(words);
  expect(report.summary).not.toContain('\n');
}

/** Cached, because reading these files takes as long as most runs. */
const screeningsOf = memoizeLatest(readDataset, 10);

/** Sections whose requirements often fail together. */
const NEIGHBOURS: readonly (readonly string[])[] = [
  ['2.1', '2.2', '4.1'],
  ['2.3', '2.4', '4.2', '9'],
];

/** Requirements that need whole traversals; left out for faults that appear in single pages. */
export const needsWalks = (id: string): boolean =>
  /^(2\.[34]|9|4\.2-(r[4-7]|repeatable)|5-(valid-token|not-shared-cache))/.test(id);

export function selectionOf(fault: Fault): RequirementId[] {
  const own = tripped(fault);
  const near = own.flatMap((id) => {
    const { section } = requirement(id);
    return NEIGHBOURS.find((sections) => sections.includes(section)) ?? [section];
  });
  const walked = fault.needsNeighbours || own.some(needsWalks);
  return [...new Set([...own, ...selectIds(near).filter((id) => walked || !needsWalks(id))])];
}

/** @param untilProved ends a run limited to the fault's own requirements once each has failed with the expected words */
export async function certifyFault(
  world: World,
  fault: Fault,
  mode: Mode,
  only: readonly RequirementId[] | undefined = selectionOf(fault),
  stack?: Stack,
  untilProved = true,
): Promise<Report> {
  const left = new Map(Object.entries(fault.trips));
  const neighbours = only?.some((id) => !left.has(id)) ?? true;
  const proved = new AbortController();
  return await certifyServer(world, fault.server, mode, {
    change: fault.target,
    stack,
    only,
    runs: 2,
    // Minimal counterexamples are tested elsewhere; shrinking here would take most of the time.
    shrink: { requests: 40 },
    // Data on these servers appears immediately or never.
    pollingScale: 0.1,
    // In process only a rate limit needs real time.
    clock: stack === 'real' || fault.server?.rateLimit ? undefined : fakeClock(Date.now),
    signal: proved.signal,
    onProgress: ({ findings }) => {
      for (const { id, mismatch } of findings) if (left.get(id)?.test(sayMismatch(mismatch))) left.delete(id);
      if (left.size === 0 && !neighbours && untilProved) proved.abort('proved');
    },
  });
}

/** The requirements of a fault that the report does not find broken, with their status. */
export const missedOf = (fault: Fault, report: Report): string[] =>
  tripped(fault).flatMap((id) => {
    const expected = requirement(id).level === 'MUST' ? 'fail' : 'warn';
    const said = saidOf(report, id);
    return said.startsWith(expected) ? [] : [`${id} is not ${expected}, but ${said}`];
  });

/** The differences between the verdict on a fault and the expected one; empty if there are none. */
export function verdictErrors(fault: Fault, report: Report): string[] {
  const own = tripped(fault);
  const silent = own.flatMap((id) => {
    const { status, failures } = resultOf(report, id);
    const messages = failures.map(({ message }) => message);
    const words = fault.trips[id]!;
    const isSilent = /fail|warn/.test(status) && !messages.some((message) => words.test(message));
    return isSilent ? [`${id} does not say ${words}: ${messages.join(' | ')}`] : [];
  });
  const missed = [...missedOf(fault, report), ...silent];
  const allowed = new Set<string>([...own, ...(fault.mayTrip ?? [])]);
  const unexpected = report.requirements.flatMap(({ id, status, failures }) => {
    const stumbled = failures.find(({ confirmed }) => confirmed?.includes(WENT_WRONG));
    if (stumbled) return [`${id}: ${stumbled.confirmed}`];
    const isExpected = status !== 'error' && (status !== 'fail' || allowed.has(id));
    return isExpected ? [] : [`${id} is unexpected: ${saidOf(report, id)}`];
  });
  const should = own.every((id) => requirement(id).level === 'SHOULD');
  const verdict =
    should !== (report.verdict !== 'non-conformant') && unexpected.length === 0 && missed.length === 0
      ? [`the verdict is ${report.verdict}`]
      : [];
  return [...missed, ...unexpected, ...verdict];
}

// -- variants -----------------------------------------------------------------------------------------

export const certifyVariant = (world: World, variant: Variant, mode: Mode, options: ProofOptions) =>
  certifyServer(world, variant.server, mode, {
    ...options,
    change(target) {
      const said = variant.target?.(target) ?? target;
      // The minimal target contains only what cannot be discovered.
      const { issuer, rateLimit, headers } = said;
      return mode === 'bare' ? { ...target, issuer, rateLimit, headers } : said;
    },
  });

/** Of right servers too, warnings about these MUSTs are true: a failure that did not recur, and tenants with equal data. */
const MAY_WARN: readonly RequirementId[] = ['7.2-no-unprovoked-5xx', '4.2-r3-one-tenant'];

/** What is wrong in the report on a right server: anything but conformance, an open core MUST, or a warning about a MUST. */
export function obstaclesOf({ requirements, verdict, summary, basis, diagnosis }: Report): string[] {
  const diagnosed = diagnosis.map(({ root }) => `${root} is diagnosed`);
  const odd = requirements.filter(({ id, level, class: needs, status, reason }) => {
    const warns = status === 'warn' && level === 'MUST' && !MAY_WARN.includes(id);
    const open = status === 'untested' && level === 'MUST' && needs === 'core' && reason !== basis;
    return status === 'fail' || status === 'error' || warns || open;
  });
  const said = odd.map((result) => `${result.id} is ${result.status}: ${messageOf(result)}`);
  const obstacles = [...said, ...diagnosed];
  return verdict === 'conformant' ? obstacles : [`the verdict is ${verdict}: ${summary}`, ...obstacles];
}
