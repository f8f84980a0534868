// Reading a YAML or JSON text into a plain value, and finding the line and column of each of its parts.

import { createRequire } from 'node:module';
import type { Document, LineCounter, Node } from 'yaml';
import { checkRepresentable, type JsonValue } from '../core/canonical.ts';
import { nestedBeyond } from './nesting.ts';
import { type Finding, formatPath, type Path, type Position, type Problem } from './problem.ts';

/** The parts of a file by path; a part that is not there is answered with the nearest one around it. */
export type Locate = (path: Path, at?: 'key' | 'value') => Position;

/** A file that was read, whatever it says. */
export interface SourceText {
  readonly file: string;
  readonly locate: Locate;
}

export type DocumentReading =
  | { readonly ok: true; readonly value: JsonValue; readonly source: SourceText }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const require = createRequire(import.meta.url);

// Loaded on first use: most starts of a gateway read no file of the owner's at all.
function yaml(): typeof import('yaml') {
  return require('yaml');
}

// A contract has some hundreds of lines; what is larger is not one.
const TEXT_LENGTH_MAX = 1024 * 1024;
const LEVELS_MAX = 100;

export interface ReadOptions {
  /** False for what only describes something: numbers that JSON would round are let pass. */
  readonly isExact?: boolean;
  readonly lengthMax?: number;
}

/**
 * One document of YAML 1.2, of which JSON is a part. Duplicate keys, unknown tags, anchors that unfold without end
 * and values that JSON cannot carry are refused.
 */
export function readDocument(text: string, file: string, options: ReadOptions = {}): DocumentReading {
  const { isExact = true, lengthMax = TEXT_LENGTH_MAX } = options;
  if (text.length > lengthMax) {
    const sentence = `The file has ${text.length} characters; at most ${lengthMax} are allowed.`;
    return { ok: false, problems: [{ file, line: 1, column: 1, sentence, severity: 'error' }] };
  }
  const { Lexer, LineCounter, parseDocument } = yaml();
  const tooDeep = nestedBeyond(new Lexer().lex(text), LEVELS_MAX);
  if (tooDeep !== undefined) {
    const sentence = `The file is nested deeper than ${LEVELS_MAX} levels here, which nothing that is read here needs.`;
    return { ok: false, problems: [problemAt(tooDeep, file, sentence)] };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const faults = [...document.errors, ...document.warnings].map((fault) =>
    problemAt(
      positionOf(lines, fault.pos[0]),
      file,
      `This cannot be read as YAML: ${firstLine(fault.message)}.`,
    ),
  );
  if (faults.length > 0) return { ok: false, problems: faults };
  const locate = locator(document, lines);
  const value = plainValue(document, isExact);
  if (value.ok) return { ok: true, value: value.value, source: { file, locate } };
  return { ok: false, problems: placed([value.finding], { file, locate }) };
}

function plainValue(
  document: Document,
  isExact: boolean,
): { readonly ok: true; readonly value: JsonValue } | { readonly ok: false; readonly finding: Finding } {
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch {
    const sentence = 'The aliases of the file unfold too far: write out what they stand for.';
    return { ok: false, finding: { path: [], sentence } };
  }
  if (value === null || value === undefined) {
    return {
      ok: false,
      finding: { path: [], sentence: 'The file is empty; a map of keys and values is expected.' },
    };
  }
  if (!isExact) return { ok: true, value: value as JsonValue };
  const representable = checkRepresentable(value);
  if (representable.ok) return representable;
  const { at, message } = representable.reason;
  const path = at
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  return {
    ok: false,
    finding: { path, sentence: `${formatPath(path)} has no exact form as JSON: ${message}` },
  };
}

function firstLine(message: string): string {
  return (message.split('\n', 1)[0] ?? '').replace(/[.:]\s*$/, '');
}

/** Gives each finding its place in the text. */
export function placed(findings: readonly Finding[], { file, locate }: SourceText): readonly Problem[] {
  return findings.map(({ path, at, sentence, severity = 'error' }) => ({
    ...problemAt(locate(path, at), file, sentence),
    severity,
  }));
}

function problemAt(position: Position, file: string, sentence: string): Problem {
  return { file, line: position.line, column: position.column, sentence, severity: 'error' };
}

function positionOf(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

function locator(document: Document, lines: LineCounter): Locate {
  const { isAlias, isMap, isNode, isScalar, isSeq } = yaml();
  const resolved = (node: unknown): Node | undefined => {
    if (isAlias(node)) return node.resolve(document);
    return isNode(node) ? node : undefined;
  };
  const step = (node: Node | undefined, token: string | number): { key?: Node; value?: Node } | undefined => {
    if (isSeq(node)) {
      const item = resolved(node.items[Number(token)]);
      return item && { value: item };
    }
    if (!isMap(node)) return undefined;
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(token));
    if (pair === undefined) return undefined;
    const key = isNode(pair.key) ? pair.key : undefined;
    const value = resolved(pair.value);
    return { ...(key && { key }), ...(value && { value }) };
  };
  return (path, at = 'value') => {
    let value = resolved(document.contents);
    let offset = value?.range?.[0] ?? 0;
    for (const [index, token] of path.entries()) {
      const found = step(value, token);
      if (found === undefined) break;
      const wantsKey = at === 'key' && index === path.length - 1;
      const node = wantsKey ? (found.key ?? found.value) : (found.value ?? found.key);
      offset = node?.range?.[0] ?? offset;
      value = found.value;
    }
    return positionOf(lines, offset);
  };
}
