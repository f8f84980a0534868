// The destination in the stories of `try` and `demo`: an MCP server over stdio that keeps notes in a scratch folder. Where
// it is told to lose an answer, it carries out what is asked, and ends before it has said so. Its own log is counted.

import { appendFileSync, existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

interface Note {
  readonly id: string;
  readonly tool: string;
  readonly text?: string;
  readonly ref?: string;
}

interface Request {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: { readonly [name: string]: string } };
}

const folder = process.argv[2] ?? '.';
const log = join(folder, 'notes.jsonl');
const planned = join(folder, 'lose-answer');
const TEXT = { type: 'string' };

const TOOLS = [
  {
    name: 'add_note',
    description: 'Adds a note.',
    inputSchema: { type: 'object', properties: { text: TEXT, ref: TEXT }, required: ['text'] },
  },
  {
    name: 'post_message',
    description: 'Posts a message. It cannot be looked up afterwards.',
    inputSchema: { type: 'object', properties: { text: TEXT }, required: ['text'] },
  },
  {
    name: 'erase_notes',
    description: 'Erases all notes.',
    inputSchema: { type: 'object', properties: {} },
  },
  {
    name: 'find_notes',
    description: 'Finds notes by their reference.',
    inputSchema: { type: 'object', properties: { ref: TEXT }, required: ['ref'] },
    annotations: { readOnlyHint: true },
  },
];

function records(): readonly Note[] {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Note);
}

function call({ arguments: args = {}, name = '' }: NonNullable<Request['params']>): unknown {
  if (name === 'find_notes') return { items: records().filter(({ ref }) => ref === args['ref']) };
  const record: Note = { id: `NOTE-${records().length + 1}`, tool: name, ...args };
  appendFileSync(log, `${JSON.stringify(record)}\n`);
  if (!existsSync(planned)) return record;
  renameSync(planned, join(folder, 'answer-lost'));
  process.exit(1);
}

function answer({ method, params = {} }: Request): object | undefined {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'counterfoil-story', version: '1.0.0' },
      };
    case 'tools/list':
      return { tools: TOOLS };
    case 'tools/call':
      return { content: [{ type: 'text', text: JSON.stringify(call(params)) }] };
    case 'ping':
      return {};
    default:
      return undefined;
  }
}

// Whoever asked may be gone, and what was asked is carried out all the same.
process.stdout.on('error', () => {});
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  const { id } = request;
  if (id === undefined) continue;
  const result = answer(request);
  const said =
    result === undefined ? { error: { code: -32601, message: 'There is no such method.' } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...said })}\n`);
}
