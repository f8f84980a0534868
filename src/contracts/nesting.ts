// How deep a text is nested, told from its tokens alone: a reader that follows the nesting by recursion runs out of stack
// on a text of a few thousand characters, and then takes the whole process with it.

import type { Position } from './problem.ts';

/** What the marks of a lexer are that have no width in the text. */
const WIDTHLESS: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001f']);

/**
 * Where a text is first nested deeper than `levelsMax`, to within a factor of two where lists stand under a key without
 * being indented; `undefined` where it never is.
 *
 * @param tokens the text cut into the tokens of YAML, in order and with nothing left out
 */
export function nestedBeyond(tokens: Iterable<string>, levelsMax: number): Position | undefined {
  const columns: number[] = [];
  let flow = 0;
  let [line, column] = [1, 1];
  /** Where the node of the present line stands, after its indentation and its marks of lists. */
  let node: number | undefined;
  for (const token of tokens) {
    if (WIDTHLESS.has(token)) continue;
    const isSpace = token.trim() === '';
    if (token === '[' || token === '{') flow += 1;
    else if (token === ']' || token === '}') flow = Math.max(0, flow - 1);
    else if (flow === 0 && !isSpace) node = openBlock(token, columns, column, node);
    if (columns.length + flow > levelsMax) return { line, column };
    const breaks = token.split('\n').length - 1;
    if (breaks === 0) column += token.length;
    else {
      line += breaks;
      column = token.length - token.lastIndexOf('\n');
      node = undefined;
    }
  }
  return undefined;
}

/** @returns where the node of this line stands, once that is known */
function openBlock(
  token: string,
  columns: number[],
  column: number,
  node: number | undefined,
): number | undefined {
  // What begins a line at or before a column closes all that was opened there.
  if (node === undefined) while ((columns.at(-1) ?? 0) >= column) columns.pop();
  if (token === '-' || token === '?') {
    columns.push(column);
    return undefined;
  }
  if (token !== ':') return node ?? column;
  const key = node ?? column;
  if ((columns.at(-1) ?? 0) < key) columns.push(key);
  return node;
}
