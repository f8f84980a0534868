// A look-up over several pages, read as one list: whole, or not at all. What is cut short by a limit, an error or a
// page that leads in a circle says nothing of what is absent.

import type { JsonObject, JsonValue } from '../../core/canonical.ts';
import type { NextPage } from '../../core/contract.ts';
import { nextLink } from '../../core/next-link.ts';
import { valueAt } from '../../core/template.ts';
import type { Reply } from '../port.ts';

export interface Pages {
  readonly next: NextPage;
  readonly pages_max?: number;
  readonly rows_max?: number;
  /** JSON pointer to the list in each page. */
  readonly items: string;
}

/** `url`: an address to go on with; `query`: parameters beside those of the first page. */
export type PageAddress = { readonly url: string } | { readonly query: { readonly [name: string]: string } };

const PAGES_MAX = 20;
const ROWS_MAX = 2_000;

/** @param ask gives the page at an address, the first one for `undefined`; a text says why there is none */
export async function readPages(
  pages: Pages,
  ask: (at: PageAddress | undefined) => Promise<Reply | string>,
): Promise<Reply | string> {
  const { items, next, pages_max: pagesMax = PAGES_MAX, rows_max: rowsMax = ROWS_MAX } = pages;
  const rows: JsonValue[] = [];
  const visited = new Set<string>();
  let first: Reply | undefined;
  let at: PageAddress | undefined = firstPage(next);
  for (let count = 1; ; count += 1) {
    if (count > pagesMax) return `there are more than ${pagesMax} pages`;
    const page = await ask(at);
    if (typeof page === 'string') return page;
    // An error in place of the first page is the answer; later on it leaves the list incomplete.
    if (page.kind !== 'result')
      return first === undefined ? page : `page ${count} was answered with an error`;
    const list = valueAt(JSON.parse(page.body) as JsonValue, items);
    if (!Array.isArray(list)) return first === undefined ? page : `page ${count} has no list`;
    first ??= page;
    rows.push(...list);
    if (rows.length > rowsMax) return `there are more than ${rowsMax} rows`;
    at = nextPage(next, page, list.length === 0, count);
    if (at === undefined) return merged(first, items, rows);
    const name = JSON.stringify(at);
    if (visited.has(name)) return `page ${count} leads back to an earlier one`;
    visited.add(name);
  }
}

function firstPage(next: NextPage): PageAddress | undefined {
  return 'page' in next ? { query: { [next.page]: String(next.from ?? 1) } } : undefined;
}

function nextPage(next: NextPage, page: Reply, isEmpty: boolean, count: number): PageAddress | undefined {
  if ('page' in next) {
    return isEmpty ? undefined : { query: { [next.page]: String((next.from ?? 1) + count) } };
  }
  if ('link' in next) {
    const url = nextLink(page.headers?.['link']);
    return url === undefined ? undefined : { url };
  }
  const cursor = valueAt(JSON.parse(page.body) as JsonValue, next.cursor);
  const isGiven = (typeof cursor === 'string' && cursor !== '') || typeof cursor === 'number';
  return isGiven ? { query: { [next.query]: String(cursor) } } : undefined;
}

/** The first page with the rows of all of them in its list; it goes on nowhere. */
function merged(first: Reply, items: string, rows: readonly JsonValue[]): Reply {
  const whole = JSON.parse(first.body) as JsonValue;
  const { link: _links, ...headers } = first.headers ?? {};
  return { ...first, headers, body: JSON.stringify(withValue(whole, items.split('/').slice(1), rows)) };
}

function withValue(whole: JsonValue, tokens: readonly string[], value: JsonValue): JsonValue {
  const [token, ...rest] = tokens;
  if (token === undefined) return value;
  const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
  if (Array.isArray(whole)) {
    return whole.map((item, index) => (String(index) === key ? withValue(item, rest, value) : item));
  }
  const map = whole as JsonObject;
  return Object.fromEntries(
    Object.entries(map).map(([name, member]) => [
      name,
      name === key ? withValue(member, rest, value) : member,
    ]),
  );
}
