// Comma-separated values (RFC 4180) that go through a spreadsheet and come back as they were.
//
// A spreadsheet takes a cell that begins with =, +, - or @ for a formula, and other people's words are in our cells:
// such a cell gets an apostrophe before it, which reading takes away again.

/** Also their full-width forms, and what some programs skip before they look. */
const MAY_BE_FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const MADE_SAFE = /^'+[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const NEEDS_QUOTES = /[",\r\n]/;

export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(',')}\r\n`).join('');
}

function cellText(value: string): string {
  const safe = MAY_BE_FORMULA.test(value) ? `'${value}` : value;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export interface CsvRow {
  /** Where the row begins, counted from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

export type CsvReading =
  | { readonly ok: true; readonly rows: readonly CsvRow[] }
  /** The rest of a sentence that begins with the line. */
  | { readonly ok: false; readonly line: number; readonly problem: string };

/** Lines may end with CR LF or LF alone; empty lines are left out. */
export function readCsv(text: string): CsvReading {
  const source = text.startsWith('\ufeff') ? text.slice(1) : text;
  const rows: CsvRow[] = [];
  let at = 0;
  let line = 1;
  while (at < source.length) {
    const begun = line;
    const cells: string[] = [];
    for (;;) {
      const cell = source[at] === '"' ? quotedCell(source, at) : plainCell(source, at);
      if (typeof cell === 'string') return { ok: false, line: begun, problem: cell };
      cells.push(MADE_SAFE.test(cell.value) ? cell.value.slice(1) : cell.value);
      line += linesIn(source.slice(at, cell.end));
      at = cell.end;
      if (source[at] !== ',') break;
      at += 1;
    }
    if (source[at] === '\r') at += 1;
    if (source[at] === '\n') at += 1;
    line += 1;
    if (cells.length > 1 || cells[0] !== '') rows.push({ line: begun, cells });
  }
  return { ok: true, rows };
}

type Cell = { readonly value: string; readonly end: number } | string;

function plainCell(source: string, from: number): Cell {
  const rest = /[,\r\n"]/g;
  rest.lastIndex = from;
  const found = rest.exec(source);
  if (found?.[0] === '"') return 'has a quotation mark in the middle of a cell that does not begin with one';
  const end = found?.index ?? source.length;
  return { value: source.slice(from, end), end };
}

function quotedCell(source: string, from: number): Cell {
  const closing = /"(?!")|""/g;
  closing.lastIndex = from + 1;
  for (let found = closing.exec(source); found !== null; found = closing.exec(source)) {
    if (found[0] === '""') continue;
    const end = found.index + 1;
    const next = source[end];
    if (next !== undefined && next !== ',' && next !== '\r' && next !== '\n') {
      return 'goes on after the closing quotation mark of a cell';
    }
    return { value: source.slice(from + 1, found.index).replaceAll('""', '"'), end };
  }
  return 'begins a cell with a quotation mark that nothing closes';
}

function linesIn(text: string): number {
  return text.split('\n').length - 1;
}
