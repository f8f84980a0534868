// What the servers of the shipped bindings answer, and what their contracts make of it. The texts were seen over stdio
// with the versions that the bindings name, or are those that their sources put together.

import { describe, expect, it } from 'vitest';
import { readShipped } from '../../src/contracts/catalogue.ts';
import { loadContract } from '../../src/contracts/load.ts';
import type { ReadableReply } from '../../src/core/reply-places.ts';
import {
  classifyReply,
  fillTemplate,
  type ReplyMeaning,
  readLookup,
  readReadBack,
} from '../../src/core/reply-reading.ts';

function operationOf(id: string, operation: string) {
  const loaded = loadContract(readShipped(`${id}.contract.yaml`), id);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const found = loaded.contract.operations.find((each) => each.id === operation);
  if (found === undefined) throw new Error(`${id} has no operation ${operation}.`);
  return found;
}

const text = (content: string, isError = false): ReadableReply => ({
  kind: isError ? 'tool_error' : 'result',
  body: JSON.stringify({ content: [{ type: 'text', text: content }], ...(isError ? { isError } : {}) }),
});
const failed = (content: string): ReadableReply => text(content, true);
const json = (value: unknown): ReadableReply => text(JSON.stringify(value));
const structured = (structuredContent: unknown): ReadableReply => ({
  kind: 'result',
  body: JSON.stringify({ content: [], structuredContent }),
});
const thrown = (message: string): ReadableReply => ({
  kind: 'protocol_error',
  code: -32603,
  body: JSON.stringify({ code: -32603, message }),
});

describe('what an answer to a write means', () => {
  it.each<[string, string, ReadableReply, ReplyMeaning]>([
    // Slack: nothing is marked as an error.
    ['server-slack', 'message.post', text('{"ok":true,"channel":"C1","ts":"1.2"}'), 'accepted'],
    ['server-slack', 'message.post', text('{"ok":false,"error":"channel_not_found"}'), 'rejected'],
    [
      'server-slack',
      'message.post',
      text('{"error":"Missing required arguments: channel_id and text"}'),
      'rejected',
    ],
    ['server-slack', 'message.post', text('{"ok":false,"error":"fatal_error"}'), 'unknown'],
    ['server-slack', 'message.post', text('{"ok":false,"error":"an error of next year"}'), 'unknown'],
    ['server-slack', 'message.post', text('{"error":"fetch failed"}'), 'unknown'],
    ['server-slack', 'reaction.add', text('{"ok":false,"error":"already_reacted"}'), 'accepted'],
    // GitHub: everything is thrown, and one text means two things.
    ['server-github', 'issue.create', thrown('Invalid input: [{"code":"invalid_type"}]'), 'rejected'],
    ['server-github', 'issue.create', thrown("Repository 'a/b' not found. Please verify:\n1."), 'rejected'],
    ['server-github', 'issue.create', thrown('Failed to create issue: fetch failed\nStack: …'), 'unknown'],
    ['server-github', 'pull.create', thrown('Validation Error: Validation Failed\nDetails: {}'), 'rejected'],
    ['server-github', 'pull.create', thrown('Invalid input: [{"code":"invalid_type"}]'), 'unknown'],
    ['server-github', 'file.put', thrown('Invalid input: [{"code":"invalid_type"}]'), 'error'],
    ['server-github', 'file.put', thrown('Conflict: a.txt does not match 1234'), 'rejected'],
    ['server-github', 'comment.add', thrown('Not Found: Resource not found: Not Found'), 'rejected'],
    ['server-github', 'comment.add', thrown('GitHub API Error: Server Error'), 'error'],
    ['server-github', 'comment.add', thrown('fetch failed'), 'error'],
    [
      'server-github',
      'issue.create',
      thrown('Failed to create issue: Validation Failed\nStack: …'),
      'rejected',
    ],
    // Only reported, and not documented: the error reaches the caller, and establishes nothing.
    ['server-github', 'pull.merge', thrown('GitHub API Error: Pull Request is not mergeable'), 'error'],
    ['server-github', 'pull.merge', thrown('GitHub API Error: Bad Gateway'), 'unknown'],
    // Notion: what it refuses is a result.
    ['notion-mcp-server', 'page.create', text('{"object":"page","id":"p1"}'), 'accepted'],
    [
      'notion-mcp-server',
      'page.create',
      text('{"status":404,"object":"error","code":"object_not_found"}'),
      'rejected',
    ],
    [
      'notion-mcp-server',
      'page.create',
      text('{"status":409,"object":"error","code":"conflict_error"}'),
      'unknown',
    ],
    ['notion-mcp-server', 'page.create', text('{"status":"error","data":"<html>"}'), 'unknown'],
    ['notion-mcp-server', 'page.create', thrown('getaddrinfo ENOTFOUND api.notion.com'), 'error'],
    // MongoDB: an insert may have stopped in the middle.
    [
      'mongodb-mcp-server',
      'documents.insert',
      failed('Connection "nope" does not exist or has expired. Call'),
      'rejected',
    ],
    [
      'mongodb-mcp-server',
      'documents.insert',
      failed('Error running insert-many: E11000 duplicate key error'),
      'error',
    ],
    [
      'mongodb-mcp-server',
      'documents.insert',
      failed('Input validation error: Invalid arguments for tool'),
      'rejected',
    ],
    [
      'mongodb-mcp-server',
      'collection.drop',
      failed('User did not confirm the execution of the `drop-collection` tool'),
      'rejected',
    ],
    // Desktop Commander: a replacement that found nothing is a result as well.
    [
      'desktop-commander',
      'file.edit',
      text('Search content not found in /a. The closest match was'),
      'rejected',
    ],
    [
      'desktop-commander',
      'file.edit',
      text('[Reading 20 lines from start]\n\nExpected 2 occurrences'),
      'accepted',
    ],
    [
      'desktop-commander',
      'file.write',
      failed("Error: ENOENT: no such file or directory, open '/a/b'"),
      'rejected',
    ],
    ['desktop-commander', 'file.write', failed('Error: ENOSPC: no space left on device, write'), 'error'],
    ['desktop-commander', 'file.write', failed('Error: [\n  {\n    "code": "invalid_type",'), 'rejected'],
    ['desktop-commander', 'process.end', failed('Error: Failed to kill process: kill ESRCH'), 'rejected'],
    // Browsers: a form may have been filled in part.
    [
      'playwright-mcp',
      'page.act',
      failed('### Error\nError: Ref e5 not found in the current page snapshot.'),
      'rejected',
    ],
    [
      'playwright-mcp',
      'form.fill',
      failed('### Error\nError: Ref e5 not found in the current page snapshot.'),
      'error',
    ],
    ['playwright-mcp', 'page.act', failed('### Error\nTimeoutError: locator.click: Timeout 5000ms'), 'error'],
    ['chrome-devtools-mcp', 'page.act', failed('Error: Element uid "1_1" not found on page 1.'), 'rejected'],
    ['chrome-devtools-mcp', 'form.fill', failed('Error: Element uid "1_1" not found on page 1.'), 'error'],
    [
      'chrome-devtools-mcp',
      'page.act',
      failed('Input validation error: Invalid arguments for tool click'),
      'rejected',
    ],
    [
      'sentry-mcp-server',
      'team.create',
      failed('**Input Error**\n\nThere was an HTTP 409 error'),
      'rejected',
    ],
    ['sentry-mcp-server', 'team.create', failed('**Error**\n\nThere was an HTTP 502 server error'), 'error'],
    ['sentry-mcp-server', 'team.create', failed('**Configuration Error**\n\nUnable to connect'), 'error'],
    ['server-memory', 'observations.add', failed('Entity with name nobody not found'), 'rejected'],
    ['server-memory', 'entities.create', failed('ENOSPC: no space left on device, write'), 'rejected'],
    [
      'server-memory',
      'entities.create',
      failed('MCP error -32602: Output validation error: Invalid'),
      'error',
    ],
  ])('%s, %s: %o is %s', (id, operation, reply, means) => {
    expect(classifyReply(reply, operationOf(id, operation)).means).toBe(means);
  });
});

describe('what is read of GitHub', () => {
  const args = { owner: 'acme', repo: 'billing', title: 'Late invoices', body: 'Since Monday.' };
  const issue = { number: 17, title: args.title, body: args.body };
  const create = operationOf('server-github', 'issue.create');
  const [lookup] = create.lookups;
  if (lookup === undefined) throw new Error('There is a look-up.');

  it('an issue is found by title and body; two of them, or another body, prove nothing', () => {
    const found = (...issues: readonly object[]) => readLookup(json(issues), lookup, { arguments: args });
    expect(found({ ...issue, number: 3, title: 'Other' }, issue)).toMatchObject({
      found: 'present',
      record: '17',
      contentMatches: true,
    });
    expect(found(issue, { ...issue, number: 9 }).found).toBe('several');
    expect(found({ ...issue, body: null }).found).toBe('absent');
    expect(found().found).toBe('absent');
    expect(lookup.proves.absent).toBe('nothing');
    const { body: _, ...bodiless } = args;
    expect(readLookup(json([issue]), lookup, { arguments: bodiless }).found).toBe('inconclusive');
  });

  it('its number is asked for as a number', () => {
    const { record = '' } = classifyReply(json(issue), create);
    expect(record).toBe('17');
    expect(fillTemplate(create.readback?.tool?.arguments, { arguments: args, record })).toEqual({
      ok: true,
      value: { owner: 'acme', repo: 'billing', issue_number: 17 },
    });
  });

  it('a pull request is merged once it has a time of merging, and not by being closed', () => {
    const [merged] = operationOf('server-github', 'pull.merge').lookups;
    if (merged === undefined) throw new Error('There is a look-up.');
    const found = (pull: object) => readLookup(json(pull), merged, { arguments: {} }).found;
    expect(found({ number: 4, state: 'closed', merged_at: '2026-11-30T10:00:00Z' })).toBe('present');
    expect(found({ number: 4, state: 'closed', merged_at: null })).toBe('absent');
    expect(found({ number: 4, state: 'open', merged_at: null })).toBe('absent');
    expect(found({ number: 4, state: 'closed' })).toBe('inconclusive');
    expect(merged.proves.absent).toBe('nothing');
  });
});

describe('what is read of the others', () => {
  it('a page of Notion is in the trash when it says so', () => {
    const { readback, lookups } = operationOf('notion-mcp-server', 'page.trash');
    if (readback === undefined || lookups[0] === undefined) throw new Error('There are both.');
    const values = { arguments: { page_id: 'p1', in_trash: true } };
    const page = (inTrash: boolean) => json({ object: 'page', id: 'p1', in_trash: inTrash });
    expect(readReadBack(page(true), readback, values).matches).toBe(true);
    expect(readReadBack(page(false), readback, values).matches).toBe(false);
    expect(readLookup(page(true), lookups[0], values).found).toBe('present');
    expect(readLookup(page(false), lookups[0], values).found).toBe('absent');
    expect(lookups[0].proves.absent).toBe('nothing');
    expect(readLookup(text('{"status":404,"object":"error"}'), lookups[0], values).found).toBe(
      'inconclusive',
    );
  });

  it('a message of Slack is read back by its time, which is its name', () => {
    const post = operationOf('server-slack', 'message.post');
    const { record = '' } = classifyReply(text('{"ok":true,"channel":"C1","ts":"1733.5"}'), post);
    if (post.readback === undefined) throw new Error('There is a read-back.');
    const values = { arguments: { channel_id: 'C1', text: 'a < b' }, record };
    const thread = (ts: string) => json({ ok: true, messages: [{ ts, text: 'a &lt; b' }] });
    expect(readReadBack(thread('1733.5'), post.readback, values).matches).toBe(true);
    expect(readReadBack(thread('1733.6'), post.readback, values).matches).toBe(false);
    expect(readReadBack(text('{"ok":false,"error":"missing_scope"}'), post.readback, values).matches).toBe(
      'inconclusive',
    );
  });

  it('a collection of MongoDB is there when it is listed', () => {
    const { readback, lookups } = operationOf('mongodb-mcp-server', 'collection.create');
    if (readback === undefined || lookups[0] === undefined) throw new Error('There are both.');
    const values = { arguments: { connectionId: 'c', database: 'd', collection: 'invoices' } };
    const listed = (...names: readonly string[]) =>
      structured({ collections: names.map((name) => ({ name })) });
    expect(readReadBack(listed('a', 'invoices'), readback, values).matches).toBe(true);
    expect(readReadBack(listed('invoices_old'), readback, values).matches).toBe(false);
    expect(readLookup(listed('a', 'invoices'), lookups[0], values).found).toBe('present');
    expect(readLookup(listed('a'), lookups[0], values).found).toBe('absent');
  });

  it('a directory of Desktop Commander is one when it is told to be', () => {
    const { readback } = operationOf('desktop-commander', 'directory.create');
    if (readback === undefined) throw new Error('There is a read-back.');
    const values = { arguments: { path: '/srv/a' } };
    const told = (isDirectory: boolean) =>
      text(`size: 4096\nisDirectory: ${isDirectory}\nisFile: ${!isDirectory}`);
    expect(readReadBack(told(true), readback, values).matches).toBe(true);
    expect(readReadBack(told(false), readback, values).matches).toBe(false);
  });
});
