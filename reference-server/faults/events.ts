/** Section 6: faults in the captured events; the server has none. */
import type { Target } from '../../engine/target/target.ts';
import type { Fault } from './fault.ts';

type Change = (line: string, index: number) => string | readonly string[];

const captured =
  (change: Change) =>
  (target: Target): Target => ({ ...target, events: target.events?.flatMap(change) });

/** Faults that trip the same requirements; `changes` maps a fault's name to its change of each event line. */
const altering =
  (trips: Fault['trips'], mayTrip: Fault['mayTrip'] = []) =>
  (changes: Readonly<Record<string, Change>>): Fault[] =>
    Object.entries(changes).map(([name, change]) => ({
      name,
      trips,
      mayTrip,
      bare: false,
      target: captured(change),
    }));

/** Like `altering`, for a target file without a window and a dataset. */
const alteringWithoutWindow =
  (...args: Parameters<typeof altering>) =>
  (changes: Readonly<Record<string, Change>>): Fault[] =>
    altering(...args)(changes).map(({ target, ...fault }) => ({
      ...fault,
      target: (given) => ({ ...target!(given), window: undefined, dataset: undefined }),
    }));

const replaced =
  (pattern: RegExp | string, to: string) =>
  (line: string): string =>
    line.replace(pattern, to);

const without = (name: string) => replaced(new RegExp(`"${name}":"[^"]*",`), '');

const inData =
  (pattern: RegExp, to: string) =>
  (line: string): string => {
    const start = line.indexOf('"data":');
    return line.slice(0, start) + line.slice(start).replace(pattern, to);
  };

const everyTenth =
  (change: (line: string) => string | readonly string[]): Change =>
  (line, index) =>
    index % 10 === 3 ? change(line) : line;

const unknownEvent: Change = (line, index) =>
  index === 5 ? [line, inData(/"id":\d+/, '"id":424242424242')(line)] : line;

const TENANT = '"tenantId":"00000000-0000-4000-8000-000000000001"';

export const events: readonly Fault[] = [
  ...altering({ '6-envelope': /specversion: "1.0"/ })({ 'specversion 0.3': replaced('"1.0"', '"0.3"') }),
  ...altering({ '6-envelope': /source: a non-empty string/ })({ 'events without source': without('source') }),
  ...altering({ '6-envelope': /type: a non-empty string/ })({
    'one event of ten without type': everyTenth(without('type')),
  }),
  ...altering({ '6-envelope': /a CloudEvent|specversion|data/ }, ['6-complete', '6-same-object'])({
    'the bare screening is published, without an envelope': (line) =>
      line.slice(line.indexOf('"data":') + '"data":'.length, -1),
  }),
  ...altering({ '6-envelope': /data: the screening/ }, ['6-complete', '6-same-object'])({
    'data is the screening as a JSON string': (line) => {
      const start = line.indexOf('"data":') + '"data":'.length;
      return `${line.slice(0, start)}${JSON.stringify(line.slice(start, -1))}}`;
    },
  }),
  ...altering({ '6-envelope': /one event of a source and id/ })({
    'one event of ten has the id of the one before': (() => {
      let before = '';
      return (line: string, index: number): string => {
        const id = /"id":"([^"]*)"/.exec(line)![1]!;
        const changed = index % 10 === 3 ? line.replace(`"id":"${id}"`, `"id":"${before}"`) : line;
        before = id;
        return changed;
      };
    })(),
  }),
  ...altering({ '6-envelope': /lower-case letters and digits/ })({
    'an attribute in camel case': replaced('{"specversion"', '{"tenantName":"x","specversion"'),
  }),
  ...altering({ '6-envelope': /time: an RFC 3339/ })({
    'time as a number of seconds': replaced(/"time":"[^"]*"/, '"time":1718445600'),
    'one event of ten with a time without offset': everyTenth(
      replaced(/"time":"[^"]*"/, '"time":"2024-06-15T12:00:00"'),
    ),
  }),
  ...altering({ '6-envelope': /string, a boolean or an integer/ })({
    'an attribute that is an object': replaced('{"specversion"', '{"trace":{"id":1},"specversion"'),
  }),
  ...altering({ '6-envelope': /datacontenttype: a media type/ })({
    'datacontenttype json': replaced('"application/json"', '"json"'),
  }),
  ...altering({ '6-same-object': /testTime/ }, ['6-complete'])({
    'testTime of events in milliseconds of UTC': (line) =>
      line.replace(/"testTime":"([^"]*)"/, (_, at: string) => `"testTime":"${new Date(at).toISOString()}"`),
  }),
  ...altering({ '6-same-object': /result/ })({
    'one event of ten with another result': everyTenth(inData(/"result":[^,}]*/, '"result":"changed"')),
  }),
  ...altering({ '6-same-object': /device/ })({
    'events without a field that REST returns': inData(/"device":\{[^}]*\},/, ''),
  }),
  ...altering({ '6-same-object': /test_time|testTime/ }, ['6-complete'])({
    'fields of events in snake case': inData(/"testTime"/, '"test_time"'),
  }),
  ...altering({ '6-same-object': /data.id: a JSON integer/ }, ['6-complete'])({
    'ids of events as text': inData(/"id":(\d+)/, '"id":"$1"'),
    'one event of ten with its id as a float': everyTenth(inData(/"id":(\d+)/, '"id":$1.0')),
    'one event of ten without id': everyTenth(inData(/"id":\d+,/, '')),
  }),
  ...altering({ '6-same-object': /data.tenantId/ })({
    "one event of ten is another tenant's": everyTenth(inData(/"tenantId":"[^"]*"/, TENANT)),
  }),
  ...altering({ '6-complete': /an event of screening \d+/ })({
    'one event of ten is lost': everyTenth(() => []),
  }),
  ...altering({ '6-complete': /only events of screenings that REST returns/ }, [
    '6-same-object',
    '6-envelope',
  ])({ 'an event of a screening that REST does not return': unknownEvent }),
  ...alteringWithoutWindow({ '6-complete': /only events of screenings that REST returns.*424242424242/ }, [
    '6-same-object',
    '6-envelope',
  ])({ 'no window is known, and an event is of a screening that REST does not return': unknownEvent }),
  ...alteringWithoutWindow({ '6-same-object': /id: \d+, as REST returns it.*what a double makes of it/ }, [
    '6-complete',
  ])({
    'no window is known, and the ids of events went through doubles': (line) =>
      line.replace(
        /("data":\{"id":)(\d+)/,
        (_, before: string, id: string) => `${before}${BigInt(Number(id))}`,
      ),
  }),
  {
    name: 'one event of ten has no testTime, and no window is named',
    trips: { '6-same-object': /data.testTime/ },
    bare: false,
    target: (target) => ({
      ...captured(everyTenth(inData(/"testTime":"[^"]*",/, '')))(target),
      window: undefined,
    }),
  },
];
