import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineFraming, type UnreadableLine } from '../../src/destination/mcp/line-framing.ts';

function setup(frameMaxBytes?: number) {
  const frames: string[] = [];
  const bytes: Buffer[] = [];
  const unreadable: UnreadableLine[] = [];
  const framing = new LineFraming({
    ...(frameMaxBytes === undefined ? {} : { frameMaxBytes }),
    onFrame: (frame) => {
      frames.push(frame.toString('utf8'));
      bytes.push(Buffer.from(frame));
    },
    onUnreadable: (line) => unreadable.push(line),
  });
  return { framing, frames, bytes, unreadable };
}

/** Cuts the bytes at the given places, in any order and with repeats, as a pipe might. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

describe('line framing', () => {
  test('gives the same frames however the stream is cut', () => {
    const line = fc.oneof(
      fc.json(),
      fc.string({ unit: 'binary' }).map((text) => text.replaceAll(/[\r\n]/g, ' ')),
      fc.constantFrom('', 'żółw 🐢', '{"a":"\\n"}'),
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n'))),
        fc.array(fc.nat()),
        fc.constantFrom('', 'half a frame'),
        (lines, places, rest) => {
          const { framing, bytes } = setup();
          const stream = Buffer.from(lines.map(([text, end]) => text + end).join('') + rest);
          for (const chunk of cut(stream, places)) framing.push(chunk);
          const expected = lines.map(([text]) => Buffer.from(text)).filter((frame) => frame.length > 0);
          expect(bytes).toEqual(expected);
          expect(framing.end()).toBe(Buffer.byteLength(rest));
        },
      ),
    );
  });

  test('keeps bytes that are not UTF-8', () => {
    const { framing, bytes } = setup();
    const frame = Buffer.from([0x22, 0xff, 0xfe, 0xc3, 0x22]);
    framing.push(Buffer.concat([frame, Buffer.from('\n')]));
    expect(bytes).toEqual([frame]);
  });

  test('puts a character together that was cut in two', () => {
    const { framing, frames } = setup();
    const bytes = Buffer.from('"🐢"\n');
    for (const byte of bytes) framing.push(Buffer.from([byte]));
    expect(frames).toEqual(['"🐢"']);
  });

  test('a later chunk does not change a frame that was given out', () => {
    const { framing, bytes } = setup();
    framing.push(Buffer.from('{"first"'));
    framing.push(Buffer.from(':1}\n{"sec'));
    framing.push(Buffer.from('ond":2}\n'));
    expect(bytes.map(String)).toEqual(['{"first":1}', '{"second":2}']);
  });

  test('reports an over-long line once, with both its ends, and goes on', () => {
    fc.assert(
      fc.property(fc.array(fc.nat()), fc.integer({ min: 101, max: 20_000 }), (places, length) => {
        const { framing, frames, unreadable } = setup(100);
        const long = `start${'x'.repeat(length - 8)}end`;
        for (const chunk of cut(Buffer.from(`before\n${long}\r\nafter\n`), places)) framing.push(chunk);
        expect(frames).toEqual(['before', 'after']);
        expect(unreadable).toHaveLength(1);
        const [line] = unreadable;
        expect(line?.start.toString()).toMatch(/^start/);
        expect(line?.end.toString()).toMatch(/end\r?$/);
      }),
    );
  });

  test('a frame of exactly the cap is whole, also before CRLF', () => {
    const { framing, frames, unreadable } = setup(10);
    framing.push(Buffer.from('0123456789\n0123456789\r'));
    framing.push(Buffer.from('\n0123456789x\n'));
    expect(frames).toEqual(['0123456789', '0123456789']);
    expect(unreadable.map((line) => line.bytes)).toEqual([11]);
  });

  test('a long line in small chunks costs time in proportion to its length', () => {
    const spend = (chunks: number): number => {
      const { framing, bytes } = setup();
      const chunk = Buffer.alloc(100, 'x');
      const began = process.cpuUsage();
      for (let index = 0; index < chunks; index++) framing.push(chunk);
      framing.push(Buffer.from('\n'));
      expect(bytes[0]?.length).toBe(chunks * 100);
      const used = process.cpuUsage(began);
      return used.user + used.system;
    };
    spend(20_000);
    const short = spend(20_000);
    const long = spend(160_000);
    // Eight times the length; a quadratic way would take sixty-four times as long.
    expect(long / short).toBeLessThan(32);
  });
});
