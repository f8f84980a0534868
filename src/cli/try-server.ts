// The destination of `counterfoil try`: an MCP server over stdio that keeps notes in a scratch folder, and loses one
// answer: it makes the first note, and ends before it has said so. Its own log is what is counted.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

interface Note {
  readonly id: string;
  readonly text: string;
  readonly ref?: string;
}

interface Request {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: { readonly [name: string]: string } };
}

const folder = process.argv[2] ?? '.';
const log = join(folder, 'notes.jsonl');
const lost = join(folder, 'answer-lost');
const TEXT = { type: 'string' };

const TOOLS = [
  {
    name: 'add_note',
    description: 'Adds a note.',
    inputSchema: { type: 'object', properties: { text: TEXT, ref: TEXT }, required: ['text'] },
  },
  {
    name: 'find_notes',
    description: 'Finds notes by their reference.',
    inputSchema: { type: 'object', properties: { ref: TEXT }, required: ['ref'] },
    annotations: { readOnlyHint: true },
  },
];

function notes(): readonly Note[] {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Note);
}

function call({ arguments: args = {}, name }: NonNullable<Request['params']>): unknown {
  if (name === 'find_notes') return { items: notes().filter(({ ref }) => ref === args['ref']) };
  const note: Note = { id: `NOTE-${notes().length + 1}`, text: args['text'] ?? '', ...args };
  appendFileSync(log, `${JSON.stringify(note)}\n`);
  if (existsSync(lost)) return note;
  writeFileSync(lost, '');
  process.exit(1);
}

function answer({ method, params = {} }: Request): object | undefined {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'counterfoil-try', version: '1.0.0' },
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

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  const { id } = request;
  if (id === undefined) continue;
  const result = answer(request);
  const said =
    result === undefined ? { error: { code: -32601, message: 'There is no such method.' } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...said })}\n`);
}
