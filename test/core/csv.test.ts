import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { csvText, readCsv } from '../../src/core/csv.ts';

describe('what is written', () => {
  test('ends its lines with CR LF, and quotes commas, quotation marks and line ends', () => {
    expect(
      csvText([
        ['a', 'b,c'],
        ['say "x"', 'two\nlines'],
      ]),
    ).toBe('a,"b,c"\r\n"say ""x""","two\nlines"\r\n');
  });

  test.each(['=1+1', '+1', '-1', '@sum', '\t=1', '\r=1', "'=1", '＝1'])(
    '%j is no formula for a spreadsheet',
    (cell) => {
      const [row = ''] = csvText([[cell, 'x']]).split(',x');
      expect(row.replace(/^"/, '').startsWith("'")).toBe(true);
    },
  );
});

describe('what is read', () => {
  test('is what was written, whatever the cells hold', () => {
    const cell = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom('"', ',', '\r', '\n', "'", '=', '-', 'a') }),
    );
    fc.assert(
      fc.property(fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { maxLength: 5 }), (rows) => {
        const reading = readCsv(csvText(rows));
        expect(reading.ok && reading.rows.map(({ cells }) => cells)).toEqual(rows);
      }),
    );
  });

  test('a byte order mark, LF alone, a last line without an end, and empty lines are taken as they are meant', () => {
    expect(readCsv('\ufeffa,b\n\n1,2\r\n3,')).toEqual({
      ok: true,
      rows: [
        { line: 1, cells: ['a', 'b'] },
        { line: 3, cells: ['1', '2'] },
        { line: 4, cells: ['3', ''] },
      ],
    });
  });

  test('lines are counted also where a cell has several', () => {
    const reading = readCsv('"a\nb",1\nc,2\n');
    expect(reading.ok && reading.rows.map(({ line }) => line)).toEqual([1, 3]);
  });

  test.each([
    ['a,"b', 1, /nothing closes/],
    ['x,y\na,"b"c', 2, /goes on after/],
    ['a,b"c"', 1, /in the middle/],
  ])('%j has a line with a sentence', (text, line, problem) => {
    expect(readCsv(text)).toEqual({ ok: false, line, problem: expect.stringMatching(problem) });
  });
});
