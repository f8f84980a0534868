import { describe, expect, test } from 'vitest';
import type { NextPage } from '../../src/core/contract.ts';
import { type PageAddress, type Pages, readPages } from '../../src/destination/http/pages.ts';
import type { Reply } from '../../src/destination/port.ts';

/** Pages by what they are asked by; `''` is the first. */
function bookOf(pages: { readonly [at: string]: object }, headers: { readonly [at: string]: string } = {}) {
  const asked: string[] = [];
  const ask = async (at: PageAddress | undefined): Promise<Reply | string> => {
    const name = at === undefined ? '' : 'url' in at ? at.url : Object.entries(at.query).join('&');
    asked.push(name);
    const body = pages[name];
    if (body === undefined) return `nobody has ${name}`;
    const link = headers[name];
    return {
      kind: 'result',
      body: JSON.stringify(body),
      code: 200,
      headers: link === undefined ? {} : { link },
    };
  };
  return { ask, asked };
}

async function rowsOf(next: NextPage, book: ReturnType<typeof bookOf>, more: Partial<Pages> = {}) {
  const read = await readPages({ next, items: '/data/rows', ...more }, book.ask);
  return typeof read === 'string' ? read : JSON.parse(read.body);
}

const rows = (...ids: number[]) => ({ data: { rows: ids }, total: 9 });

describe('pages are one list', () => {
  test('by Link headers, other relations apart', async () => {
    const book = bookOf(
      { '': rows(1), '/p2': rows(2, 3) },
      { '': '</p0>; rel="prev", </p2>; title="a, b"; rel="last next"', '/p2': '</p0>; rel="first"' },
    );
    expect(await rowsOf({ link: 'next' }, book)).toEqual(rows(1, 2, 3));
    expect(book.asked).toEqual(['', '/p2']);
  });

  test('by a cursor, until there is none', async () => {
    const next = { cursor: '/next', query: 'after' };
    const book = bookOf({ '': { ...rows(1), next: 'c2' }, 'after,c2': { ...rows(2), next: null } });
    expect(await rowsOf(next, book)).toEqual({ ...rows(1, 2), next: 'c2' });
  });

  test('by a number, until one is empty', async () => {
    const book = bookOf({ 'page,0': rows(1), 'page,1': rows(2), 'page,2': rows() });
    expect(await rowsOf({ page: 'page', from: 0 }, book)).toEqual(rows(1, 2));
  });
});

describe('what is not whole is no list', () => {
  const link: NextPage = { link: 'next' };
  test.each<[string, Promise<unknown>, string]>([
    [
      'a circle',
      rowsOf(
        link,
        bookOf({ '': rows(1), '/p2': rows(2) }, { '': '</p2>; rel=next', '/p2': '</p2>; rel=next' }),
      ),
      'page 2 leads back to an earlier one',
    ],
    [
      'too many pages',
      rowsOf(
        link,
        bookOf({ '': rows(1), '/p2': rows(2) }, { '': '</p2>; rel="next"', '/p2': '</p3>; rel="next"' }),
        { pages_max: 2 },
      ),
      'there are more than 2 pages',
    ],
    [
      'too many rows',
      rowsOf(link, bookOf({ '': rows(1, 2, 3) }), { rows_max: 2 }),
      'there are more than 2 rows',
    ],
    [
      'a page that cannot be had',
      rowsOf(link, bookOf({ '': rows(1) }, { '': '</p2>; rel="next"' })),
      'nobody has /p2',
    ],
    [
      'a page without a list',
      rowsOf(link, bookOf({ '': rows(1), '/p2': { data: {} } }, { '': '</p2>; rel="next"' })),
      'page 2 has no list',
    ],
  ])('%s', async (_what, read, why) => {
    expect(await read).toBe(why);
  });

  test('an error in place of the first page is the answer', async () => {
    const error: Reply = { kind: 'tool_error', body: '{"message":"none"}', code: 404, headers: {} };
    expect(await readPages({ next: { link: 'next' }, items: '' }, async () => error)).toBe(error);
  });
});
