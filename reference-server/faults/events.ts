/** Section 6: faults in the captured events; the server has none. */
import { theme, withEvents, type EventChange, type Fault } from './fault.ts';

const fails = theme(['6-complete', '6-same-object', '6-envelope']).failsFull;

const captured = (change: EventChange): Pick<Fault, 'target'> => ({ target: withEvents(change) });

/** For a target file without a window and a dataset. */
const withoutWindow = (change: EventChange): Pick<Fault, 'target'> => ({
  target: ({ window: _, dataset: __, ...target }) => withEvents(change)(target),
});

const replaced = (pattern: RegExp | string, to: string) => captured((line) => line.replace(pattern, to));

const inData =
  (pattern: RegExp, to: string) =>
  (line: string): string => {
    const start = line.indexOf('"data":');
    return line.slice(0, start) + line.slice(start).replace(pattern, to);
  };

/** Changes one event in ten. */
const some =
  (change: EventChange): EventChange =>
  (line, index, all) =>
    index % 10 === 3 ? change(line, index, all) : line;

const id =
  (change: (id: bigint) => bigint) =>
  (line: string): string =>
    line.replace(/("data":\{"id":)(\d+)/, (_, before: string, id: string) => before + change(BigInt(id)));

const otherSeries = id((id) => id + 2n ** 40n);

const unknownEvent: EventChange = (line, index) =>
  index === 5 ? [line, inData(/"id":\d+/, '"id":424242424242')(line)] : line;

const EVENT_ID = /"id":"[^"]*"/;

const dataOf = (line: string): string => line.slice(line.indexOf('"data":') + '"data":'.length, -1);

export const events: readonly Fault[] = [
  ...fails({ '6-envelope': /specversion: "1.0"/ })({ 'specversion is 0.3': replaced('"1.0"', '"0.3"') }),
  ...fails({ '6-envelope': /type: a non-empty string/ })({
    'some events lack type': captured(some((line) => line.replace(/"type":"[^"]*",/, ''))),
  }),
  ...fails({ '6-envelope': /a CloudEvent|specversion|data/ })({
    'events are screenings without an envelope': captured(dataOf),
  }),
  ...fails({ '6-envelope': /data: the screening/ })({
    'data is the screening as a JSON string': captured((line) =>
      line.replace(/"data":.*\}$/s, () => `"data":${JSON.stringify(dataOf(line))}}`),
    ),
  }),
  ...fails({ '6-envelope': /one event of a source and id/ })({
    'some events have the id of the event before': captured(
      some((line, index, all) => line.replace(EVENT_ID, EVENT_ID.exec(all[index - 1]!)![0])),
    ),
    'events of another type have the ids of the others': captured(
      some((line) => [line.replace(/"type":"[^"]*"/, '"type":"screening.archived"'), line]),
    ),
  }),
  ...fails({ '6-envelope': /lower-case letters and digits/ })({
    'an attribute is in camel case': replaced('{"specversion"', '{"tenantName":"x","specversion"'),
  }),
  ...fails({ '6-envelope': /time: an RFC 3339 date-time/ })({
    'time of some events has no offset': captured(some((line) => line.replace(/("time":"[^"]*)Z"/, '$1"'))),
  }),
  ...fails({ '6-envelope': /datacontenttype: a media type/ })({
    'datacontenttype is json': replaced('"application/json"', '"json"'),
  }),
  ...fails({ '6-same-object': /result/ })({
    'some events have another result': captured(some(inData(/"result":[^,}]*/, '"result":"changed"'))),
  }),
  ...fails({ '6-same-object': /device/ })({
    'events lack a member that REST returns': captured(inData(/"device":\{[^}]*\},/, '')),
  }),
  ...fails({ '6-same-object': /data.id: a JSON integer/ })({
    'ids of events are strings': captured(inData(/"id":(\d+)/, '"id":"$1"')),
  }),
  ...fails({ '6-same-object': /data.tenantId/ })({
    'some events are for another tenant': captured(
      some(inData(/"tenantId":"[^"]*"/, '"tenantId":"00000000-0000-4000-8000-000000000001"')),
    ),
  }),
  ...fails({ '6-complete': /an event of screening \d+.*events, if the screening was stored since/ })({
    'some events are missing': captured(some(() => [])),
  }),
  ...fails({ '6-complete': /only events of screenings that REST returns/ })({
    'an event is for a screening that REST does not return': captured(unknownEvent),
  }),
  ...fails({ '6-complete': /only events of screenings that REST returns.*an event of -?\d+/ })({
    'an event is for a screening that REST does not return, without a window': withoutWindow(unknownEvent),
    'some events have negative ids, without a window': withoutWindow(some(id((id) => -id))),
    'ids of some events have a zero too many, without a window': withoutWindow(some(id((id) => id * 10n))),
    'some events have an id of another series, without a window': withoutWindow(some(otherSeries)),
    'some events come again for a copy of the screening, without a window': withoutWindow(
      some((line) => [line, otherSeries(line.replace('"id":"', '"id":"copy-'))]),
    ),
  }),
  ...fails({ '6-same-object': /id: \d+, as REST returns it.*what a double makes of it/ })({
    'ids of events are rounded to doubles, without a window': withoutWindow(id((id) => BigInt(Number(id)))),
  }),
  ...fails({ '6-same-object': /data.testTime/ })({
    'some events lack testTime, without a window': withoutWindow(some(inData(/"testTime":"[^"]*",/, ''))),
  }),
];
