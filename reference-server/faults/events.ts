/** Section 6: the captured events, altered; the server is clean. */
import type { Target } from '../../engine/target/target.ts';
import type { Fault } from './fault.ts';

type Change = (line: string, index: number) => string | readonly string[];

const captured =
  (change: Change) =>
  (target: Target): Target => ({ ...target, events: target.events?.flatMap(change) });

const unwindowed =
  (change: Change) =>
  (target: Target): Target => ({ ...captured(change)(target), window: undefined, dataset: undefined });

const event = (trips: Fault['trips'], name: string, change: Change, mayTrip?: Fault['mayTrip']): Fault => ({
  name,
  trips,
  bare: false,
  target: captured(change),
  ...(mayTrip ? { mayTrip } : {}),
});

const without =
  (name: string) =>
  (line: string): string =>
    line.replace(new RegExp(`"${name}":"[^"]*",`), '');

/** Every tenth line. */
const tenth =
  (change: (line: string) => string): Change =>
  (line, index) =>
    index % 10 === 3 ? change(line) : line;

const inData =
  (pattern: RegExp, to: string) =>
  (line: string): string => {
    const start = line.indexOf('"data":');
    return line.slice(0, start) + line.slice(start).replace(pattern, to);
  };

export const events: readonly Fault[] = [
  event({ '6-envelope': /specversion: "1.0"/ }, 'specversion 0.3', (line) => line.replace('"1.0"', '"0.3"')),
  event({ '6-envelope': /source: a non-empty string/ }, 'events without source', without('source')),
  event(
    { '6-envelope': /type: a non-empty string/ },
    'one event of ten without type',
    tenth(without('type')),
  ),
  event(
    { '6-envelope': /a CloudEvent|specversion|data/ },
    'the bare screening is published, without an envelope',
    (line) => line.slice(line.indexOf('"data":') + '"data":'.length, -1),
    ['6-complete', '6-same-object'],
  ),
  event(
    { '6-envelope': /data: the screening/ },
    'data is the screening as a JSON string',
    (line) => {
      const start = line.indexOf('"data":') + '"data":'.length;
      return `${line.slice(0, start)}${JSON.stringify(line.slice(start, -1))}}`;
    },
    ['6-complete', '6-same-object'],
  ),
  event(
    { '6-same-object': /testTime/ },
    'testTime of events in milliseconds of UTC',
    (line) =>
      line.replace(/"testTime":"([^"]*)"/, (_, at: string) => `"testTime":"${new Date(at).toISOString()}"`),
    ['6-complete'],
  ),
  event(
    { '6-same-object': /result/ },
    'one event of ten with another result',
    tenth(inData(/"result":[^,}]*/, '"result":"changed"')),
  ),
  event(
    { '6-same-object': /device/ },
    'events without a field that REST returns',
    inData(/"device":\{[^}]*\},/, ''),
  ),
  event(
    { '6-same-object': /test_time|testTime/ },
    'fields of events in snake case',
    inData(/"testTime"/, '"test_time"'),
    ['6-complete'],
  ),
  event({ '6-complete': /an event of screening \d+/ }, 'one event of ten is lost', (line, index) =>
    index % 10 === 3 ? [] : line,
  ),
  event(
    { '6-complete': /only events of screenings that REST returns/ },
    'an event of a screening that REST does not return',
    (line, index) => (index === 5 ? [line, inData(/"id":\d+/, '"id":424242424242')(line)] : line),
    ['6-same-object', '6-envelope'],
  ),
  {
    name: 'no window is known, and an event is of a screening that REST does not return',
    trips: { '6-complete': /only events of screenings that REST returns.*424242424242/ },
    mayTrip: ['6-same-object', '6-envelope'],
    bare: false,
    target: unwindowed((line, index) =>
      index === 5 ? [line, inData(/"id":\d+/, '"id":424242424242')(line)] : line,
    ),
  },
  {
    name: 'no window is known, and the ids of events went through doubles',
    trips: { '6-same-object': /id: \d+, as REST returns it.*what a double makes of it/ },
    mayTrip: ['6-complete'],
    bare: false,
    target: unwindowed((line) =>
      line.replace(
        /("data":\{"id":)(\d+)/,
        (_, before: string, id: string) => `${before}${BigInt(Number(id))}`,
      ),
    ),
  },
  event(
    { '6-envelope': /one event of a source and id/ },
    'every event of one source has the same id',
    (line) => line.replace(/"id":"[^"]*"/, '"id":"1"'),
  ),
  event(
    { '6-envelope': /one event of a source and id/ },
    'one event of ten has the id of the one before',
    (() => {
      let before = '';
      return (line: string, index: number): string => {
        const id = /"id":"([^"]*)"/.exec(line)![1]!;
        const changed = index % 10 === 3 ? line.replace(`"id":"${id}"`, `"id":"${before}"`) : line;
        before = id;
        return changed;
      };
    })(),
  ),
  event({ '6-envelope': /lower-case letters and digits/ }, 'an attribute in camel case', (line) =>
    line.replace('{"specversion"', '{"tenantName":"x","specversion"'),
  ),
  event({ '6-envelope': /time: an RFC 3339/ }, 'time as a number of seconds', (line) =>
    line.replace(/"time":"[^"]*"/, '"time":1718445600'),
  ),
  event(
    { '6-envelope': /time: an RFC 3339/ },
    'one event of ten with a time without offset',
    tenth((line) => line.replace(/"time":"[^"]*"/, '"time":"2024-06-15T12:00:00"')),
  ),
  event({ '6-envelope': /string, a boolean or an integer/ }, 'an attribute that is an object', (line) =>
    line.replace('{"specversion"', '{"trace":{"id":1},"specversion"'),
  ),
  event({ '6-envelope': /datacontenttype: a media type/ }, 'datacontenttype json', (line) =>
    line.replace('"application/json"', '"json"'),
  ),
  event(
    { '6-same-object': /data.id: a JSON integer/ },
    'ids of events as text',
    inData(/"id":(\d+)/, '"id":"$1"'),
    ['6-complete'],
  ),
  event(
    { '6-same-object': /data.id: a JSON integer/ },
    'one event of ten with its id as a float',
    tenth(inData(/"id":(\d+)/, '"id":$1.0')),
    ['6-complete'],
  ),
  event(
    { '6-same-object': /data.id: a JSON integer/ },
    'one event of ten without id',
    tenth(inData(/"id":\d+,/, '')),
    ['6-complete'],
  ),
  event(
    { '6-same-object': /data.tenantId/ },
    "one event of ten is another tenant's",
    tenth(inData(/"tenantId":"[^"]*"/, '"tenantId":"00000000-0000-4000-8000-000000000001"')),
  ),
  {
    name: 'one event of ten has no testTime, and no window is named',
    trips: { '6-same-object': /data.testTime/ },
    bare: false,
    target: (target) => ({
      ...captured(tenth(inData(/"testTime":"[^"]*",/, '')))(target),
      window: undefined,
    }),
  },
];
