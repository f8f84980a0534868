// The small parts of the wire: events, headers of 2026-07-28, and edits that leave every other byte.

import { describe, expect, test } from 'vitest';
import { readInputRequired } from '../../src/destination/mcp/asking.ts';
import { oneLine } from '../../src/destination/mcp/frame.ts';
import { withMember, withMembers, withoutMembers } from '../../src/destination/mcp/json-edit.ts';
import {
  decodeHeaderValue,
  encodeHeaderValue,
  mirroredText,
  nameOfRequest,
  paramHeadersOf,
} from '../../src/destination/mcp/mcp-headers.ts';
import { type SseEvent, SseReader } from '../../src/destination/mcp/sse-reader.ts';

describe('server-sent events', () => {
  const read = (text: string, chunkBytes: number, maxBytes = 1_000): (SseEvent | 'too long')[] => {
    const events: (SseEvent | 'too long')[] = [];
    const reader = new SseReader(
      maxBytes,
      (event) => events.push(event),
      () => events.push('too long'),
    );
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += chunkBytes) reader.push(bytes.subarray(at, at + chunkBytes));
    return events;
  };
  const shown = (events: readonly (SseEvent | 'too long')[]) =>
    events.map((event) => (event === 'too long' ? event : { ...event, data: event.data.toString() }));
  const rows: [string, string, object[]][] = [
    ['one', 'data: {"a":1}\n\n', [{ data: '{"a":1}', id: undefined, retryMs: undefined }]],
    [
      'with id, type and wait',
      'id: 1-2\nevent: message\nretry: 50\ndata: x\n\n',
      [{ data: 'x', id: '1-2', retryMs: 50 }],
    ],
    ['several lines of data', 'data: a\ndata: b\ndata\n\n', [{ data: 'a\nb\n' }]],
    ['without a space', 'data:é\n\n', [{ data: 'é' }]],
    [
      'ends of lines of all kinds',
      'data: a\r\n\r\ndata: b\r\rdata: c\n\n',
      [{ data: 'a' }, { data: 'b' }, { data: 'c' }],
    ],
    ['comments and unknown fields', ': ping\nother: x\ndata: a\n\n: ping\n\n', [{ data: 'a' }]],
    ['only an id', 'id: 7\ndata: \n\n', [{ data: '', id: '7' }]],
    ['a wait that is none', 'retry: soon\ndata: a\n\n', [{ data: 'a', retryMs: undefined }]],
    ['the rest of a stream that broke off', 'data: a\n\ndata: b', [{ data: 'a' }]],
  ];
  test.each(rows)('%s, in chunks of any size', (_name, text, expected) => {
    for (const chunkBytes of [1, 2, 3, 1_000]) expect(shown(read(text, chunkBytes))).toMatchObject(expected);
    expect(read(text, 1)).toHaveLength(expected.length);
  });

  test('an event that is too long is told, once the limit is passed', () => {
    expect(read(`data: ${'x'.repeat(50)}\n\n`, 8, 20)[0]).toBe('too long');
    expect(read(`data: ${'x'.repeat(5)}\n\n`.repeat(10), 8, 20)).toHaveLength(10);
  });
});

describe('header values', () => {
  // The table of the specification, streamable-http "Value Encoding".
  test.each([
    ['us-west1', 'us-west1'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
  ])('%j is carried as %j, and read back', (value, header) => {
    expect(encodeHeaderValue(value)).toBe(header);
    expect(decodeHeaderValue(header)).toBe(value);
  });

  test.each(['=?base64?!!?=', '=?base64?/w==?=', 'a\u0000b', 'é', '=?base64?QQ?='])(
    '%j is nothing',
    (header) => {
      expect(decodeHeaderValue(header)).toBeUndefined();
    },
  );

  test('what Mcp-Name mirrors', () => {
    expect(nameOfRequest('tools/call', '{"name":"a\\u0062"}')).toBe('ab');
    expect(nameOfRequest('resources/read', '{"uri":"test://a"}')).toBe('test://a');
    expect(nameOfRequest('tasks/get', '{"taskId":"t"}')).toBe('t');
    expect(nameOfRequest('tools/list', '{"name":"x"}')).toBeUndefined();
    expect(nameOfRequest('tools/call', '{"name":7}')).toBeUndefined();
  });
});

describe('arguments that are mirrored into headers', () => {
  const schema = (property: object, more: object = {}) =>
    ({ type: 'object', properties: { a: property }, ...more }) as never;
  test('those that the schema names, at any depth of properties', () => {
    const nested = { type: 'object', properties: { b: { type: 'integer', 'x-mcp-header': 'Count' } } };
    expect(paramHeadersOf(schema(nested))).toEqual([{ header: 'mcp-param-count', path: ['a', 'b'] }]);
    expect(paramHeadersOf(undefined)).toEqual([]);
    expect(mirroredText({ a: { b: 42 } }, ['a', 'b'])).toBe('42');
    expect(mirroredText({ a: { b: true } }, ['a', 'b'])).toBe('true');
    for (const args of [{}, { a: null }, { a: [] }, { a: { b: null } }]) {
      expect(mirroredText(args, ['a', 'b'])).toBeUndefined();
    }
  });
  test.each([
    ['an empty name', schema({ type: 'string', 'x-mcp-header': '' })],
    ['a name with a line feed', schema({ type: 'string', 'x-mcp-header': 'a\nb' })],
    ['a number', schema({ type: 'number', 'x-mcp-header': 'N' })],
    ['an object', schema({ type: 'object', 'x-mcp-header': 'N' })],
    ['an element of a list', schema({ type: 'array', items: { type: 'string', 'x-mcp-header': 'N' } })],
    ['within an alternative', schema({ anyOf: [{ type: 'string', 'x-mcp-header': 'N' }] })],
    [
      'two of one name',
      {
        properties: {
          a: { type: 'string', 'x-mcp-header': 'N' },
          b: { type: 'string', 'x-mcp-header': 'n' },
        },
      } as never,
    ],
  ])('%s cannot be', (_name, given) => {
    expect(paramHeadersOf(given)).toBeUndefined();
  });
});

describe('edits of a JSON text', () => {
  const TEXT = '{ "a" : 1.0 , "b":[ 1 ],"c":"\\u00e9" }';
  test('leave every other byte', () => {
    expect(withMembers(TEXT, { x: '7', a: '9' })).toBe('{"x":7, "a" : 1.0 , "b":[ 1 ],"c":"\\u00e9" }');
    expect(withMembers('{}', { x: '7' })).toBe('{"x":7}');
    expect(withMembers('[1]', { x: '7' })).toBe('[1]');
    expect(withMember(TEXT, 'a', '{"y":1}')).toBe('{ "a" : {"y":1} , "b":[ 1 ],"c":"\\u00e9" }');
    expect(withMember(TEXT, 'd', '2')).toBe('{"d":2, "a" : 1.0 , "b":[ 1 ],"c":"\\u00e9" }');
    expect(withMember(TEXT, 'd', undefined)).toBe(TEXT);
    expect(withoutMembers(TEXT, ['b'])).toBe('{"a":1.0,"c":"\\u00e9"}');
    expect(withoutMembers(TEXT, ['z'])).toBe(TEXT);
  });

  test('a frame in several lines becomes one, byte for byte otherwise', () => {
    expect(oneLine('{\n  "a": 1\r\n}')).toBe('{   "a": 1  }');
    const bytes = Buffer.from([0x7b, 0x0a, 0xff, 0x7d]);
    expect(oneLine(bytes)).toEqual(Buffer.from([0x7b, 0x20, 0xff, 0x7d]));
    expect(oneLine(Buffer.from('{}'))).toEqual(Buffer.from('{}'));
  });
});

test('a result that asks is told from an outcome', () => {
  const asks =
    '{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"s"}';
  expect(readInputRequired(asks)).toEqual({
    questions: [{ key: 'k', method: 'roots/list', params: undefined }],
    requestState: '"s"',
  });
  for (const outcome of [
    '{}',
    '{"resultType":"complete"}',
    '{"content":"input_required"}',
    'input_required',
  ]) {
    expect(readInputRequired(outcome)).toBeUndefined();
  }
});
