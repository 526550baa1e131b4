/**
 * How good the diagnosis is, from the recorded runs of the faults, in seconds:
 * `npx tsx certify/diagnosis/leave-one-out.ts [--verbose]`. The recording is made by certify/proof/signature-table.ts.
 */
import { fileURLToPath } from 'node:url';
import { groupsOf, likenesses, type Group } from './diagnose.ts';
import type { Evidence } from './features.ts';
import { mistakeOf } from './mistakes/all.ts';
import { modelOf } from './model.ts';
import { RECORDINGS, type Recording, type Seen, type Signature } from './signature.ts';
import { SIGNATURES } from './signatures.ts';

const evidence = (seen: Seen): Evidence =>
  new Map(Object.entries(seen).map(([id, features]) => [id, new Set(features)]));
const share = (part: number, whole: number): string =>
  `${((100 * part) / Math.max(1, whole)).toFixed(1)} % of ${whole}`;
/** Of fewer recordings nothing is said. */
const ENOUGH = 50;
const verbose = process.argv.includes('--verbose');
const namesOf = ({ ranked }: Group): string[] => ranked.map(({ signature }) => signature.name);
const showsIn = (mode: Recording) => (one: Signature) => Object.keys(one.seen[mode] ?? {}).length > 0;

/** Each mistake as if it had never been met: the root, and the kind of what is told. */
function leftOut(mode: Recording): string[] {
  const faults = SIGNATURES.filter(showsIn(mode));
  let root = 0;
  let groupCount = 0;
  let told = 0;
  let rightKind = 0;
  for (const one of faults) {
    const groups = groupsOf(evidence(one.seen[mode]!), modelOf(SIGNATURES.filter((other) => other !== one)));
    groupCount += groups.length;
    const right = one.own.includes(groups[0]!.findings[0]!);
    if (right) root += 1;
    else if (verbose) console.log(`root: ${one.name}: ${groups[0]!.findings[0]} for ${one.own.join(', ')}`);
    const [likest] = likenesses(groups[0]!);
    if (!likest) continue;
    told += 1;
    if (mistakeOf(likest.name) === mistakeOf(one.name)) rightKind += 1;
    else if (verbose) console.log(`kind: ${one.name}: like ${likest.name} (${likest.likelihood})`);
  }
  return [
    `root is one of the mistake's own           ${share(root, faults.length)} (goal 95)`,
    `groups for one unknown mistake             mean ${(groupCount / faults.length).toFixed(2)} (goal 1.3 at most)`,
    `something is told of the unknown mistake   ${share(told, faults.length)}`,
    `and then it is of the right kind           ${share(rightKind, told)}`,
  ];
}

/** Each mistake by a run that the table does not hold, where it holds another of the same mistake. */
function known(mode: Recording): string[] {
  const without = (seen: Signature['seen']): Signature['seen'] => {
    const { [mode]: _, ...rest } = seen;
    return Object.keys(rest).length > 0 ? rest : seen;
  };
  const table = modelOf(SIGNATURES.map((one) => ({ ...one, seen: without(one.seen) })));
  const faults = SIGNATURES.filter(({ seen }) => Object.keys(seen).length > 1).filter(showsIn(mode));
  let root = 0;
  const places = faults.map((one) => {
    const groups = groupsOf(evidence(one.seen[mode]!), table);
    if (one.own.includes(groups[0]!.findings[0]!)) root += 1;
    else if (verbose)
      console.log(`known root: ${one.name}: ${groups[0]!.findings[0]} for ${one.own.join(', ')}`);
    const place = namesOf(groups[0]!).indexOf(one.name);
    if (verbose && place !== 0) console.log(`name: ${one.name}: like ${namesOf(groups[0]!)[0]}`);
    return place;
  });
  return [
    `root right, by a run not in the table        ${share(root, faults.length)}`,
    `right name first, by a run not in the table  ${share(places.filter((place) => place === 0).length, faults.length)} (goal 90)`,
    `right name among the first three             ${share(places.filter((place) => place >= 0 && place < 3).length, faults.length)} (goal 97)`,
  ];
}

/** How many groups one mistake makes. */
function groupsOfOne(mode: Recording): string[] {
  const table = modelOf(SIGNATURES);
  const counts = SIGNATURES.filter(showsIn(mode))
    .map((one) => {
      const groups = groupsOf(evidence(one.seen[mode]!), table);
      if (verbose && groups.length > 1)
        console.log(`groups: ${one.name}: ${groups.map(({ findings }) => findings.join(' ')).join(' | ')}`);
      return groups.length;
    })
    .sort((a, b) => a - b);
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return [
    `groups for one mistake: median ${counts[counts.length >> 1]} (goal 1), mean ${mean.toFixed(2)} (goal 1.3 at most)`,
  ];
}

/** Two mistakes at once: what both runs broke, put together. Drawn so that neither breaks what is the other's own. */
function pairs(mode: Recording, wanted: number): string[] {
  const faults = SIGNATURES.filter(showsIn(mode));
  const table = modelOf(SIGNATURES);
  let state = 20260301;
  const draw = (): Signature =>
    faults[(state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) % faults.length]!;
  let drawn = 0;
  let both = 0;
  while (drawn < wanted) {
    const [a, b] = [draw(), draw()];
    const independent = (one: Signature, other: Signature): boolean =>
      one.own.every((id) => !Object.values(other.seen).some((run) => run[id]) && !other.may.includes(id));
    if (a === b || !independent(a, b) || !independent(b, a)) continue;
    drawn += 1;
    const together = new Map([...evidence(a.seen[mode]!)]);
    for (const [id, features] of evidence(b.seen[mode]!))
      together.set(id, new Set([...(together.get(id) ?? []), ...features]));
    const first = groupsOf(together, table).slice(0, 3);
    const among = (one: Signature): boolean => first.some(({ findings }) => one.own.includes(findings[0]!));
    if (among(a) && among(b)) both += 1;
    else if (verbose)
      console.log(
        `pair: ${a.name} + ${b.name}: ${first.map(({ findings }) => findings.join(' ')).join(' | ')}`,
      );
  }
  return [`both of two mistakes are roots of the first three groups  ${share(both, wanted)} (goal 90)`];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const mode of RECORDINGS.filter((one) => SIGNATURES.filter(showsIn(one)).length >= ENOUGH)) {
    console.log(`${mode}:`);
    const lines = [...leftOut(mode), ...known(mode), ...groupsOfOne(mode), ...pairs(mode, 100)];
    for (const line of lines) console.log(`  ${line}`);
  }
}
