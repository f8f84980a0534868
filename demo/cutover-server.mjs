// The destination of the demo: the systems that a cutover agent changes, as one small MCP server without an SDK.
//
//   node cutover-server.mjs LOG [FAULTS]
//
// LOG is its database and the proof. Each effect is one line, on disk before anything is answered, and the file
// outlives the process: what it holds is what happened. Nothing here remembers a request, so that a call made
// twice takes effect twice. What was read is carried out, even when whoever asked is gone.
//
// FAULTS is a list that the audience writes between calls; each entry fires once, or `times` times, and each
// firing is a line of the log too:
//   {"id": "f1", "on": "start" | TOOL, "do": "exit"}      the process ends (a call is then never carried out)
//   {"id": "f2", "on": TOOL, "do": "lose_reply"}          carried out, recorded, never answered
//   {"id": "f3", "on": TOOL, "do": "exit_after"}          carried out, recorded; the process ends unanswered
//   {"id": "f4", "on": TOOL, "do": "take", "ms": 3000}    takes that long, then is recorded and answered
//   {"id": "f5", "on": TOOL, "do": "find_nothing"}        a list is answered as if nothing were in it yet
//   {"id": "f6", "on": TOOL, "do": "hide_first"}          the same, while there is no more than one in it
//   {"id": "f7", "on": TOOL, "do": "keep_value"}          acknowledged, and the value that was there is kept

import { fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { setTimeout as pass } from 'node:timers/promises';

const [logFile, faultsFile] = process.argv.slice(2);
if (logFile === undefined) {
  process.stderr.write('The cutover server needs a log: node cutover-server.mjs LOG [FAULTS]\n');
  process.exit(2);
}
const log = openSync(logFile, 'a');

const MACHINES = { 'vm-17': 'billing-db-old', 'vm-18': 'billing-db-new' };

// ── The log ──────────────────────────────────────────────────────────────────────────────────────────────────

function append(entry) {
  writeSync(log, `${JSON.stringify({ at: new Date().toISOString(), pid: process.pid, ...entry })}\n`);
  fsyncSync(log);
}

/** Everything so far, also what another process of this server has written. */
function entries() {
  const lines = readFileSync(logFile, 'utf8').split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}

function recordsOf(tool) {
  return entries().filter((entry) => entry.event === 'record' && entry.tool === tool);
}

// ── The tools ────────────────────────────────────────────────────────────────────────────────────────────────

/** Each write names the record that it makes; each read answers from the log. */
const WRITES = {
  create_snapshot: ({ database, label }) => {
    const id = `SNAP-${recordsOf('create_snapshot').length + 1}`;
    return { id, database, label, state: 'complete' };
  },
  raise_change_request: ({ service, starts, description, external_ref }) => {
    const id = `CHG-${1042 + recordsOf('raise_change_request').length}`;
    return { id, service, starts, description, external_ref, state: 'open' };
  },
  update_dns_record: ({ name, type, value, comment }) => {
    return { name, type, value, comment, version: dnsVersions(name, type).length + 1 };
  },
  decommission_vm: ({ vm, name }) => {
    if (MACHINES[vm] === undefined) throw new Refusal(`there is no machine ${vm}.`);
    if (MACHINES[vm] !== name) throw new Refusal(`${vm} is called ${MACHINES[vm]}, not ${name}.`);
    return { vm, name, state: 'decommissioned' };
  },
  notify_team: ({ channel, text }) => {
    return { id: `MSG-${recordsOf('notify_team').length + 1}`, channel, text };
  },
  click: ({ button }) => ({ button, clicks: recordsOf('click').length + 1 }),
};

const READS = {
  find_change_request: ({ external_ref }) => ({
    items: recordsOf('raise_change_request')
      .map(({ record }) => record)
      .filter((record) => record.external_ref === external_ref),
  }),
  get_dns_record: ({ name, type }) =>
    dnsVersions(name, type).at(-1) ?? { name, type, value: null, version: 0 },
  get_vm: ({ vm }) => {
    if (MACHINES[vm] === undefined) throw new Refusal(`there is no machine ${vm}.`);
    const isGone = recordsOf('decommission_vm').some(({ record }) => record.vm === vm);
    return { vm, name: MACHINES[vm], state: isGone ? 'decommissioned' : 'running' };
  },
  list_snapshots: ({ database, id }) => ({
    items: recordsOf('create_snapshot')
      .map(({ record }) => record)
      .filter((record) => record.database === database && (id === undefined || record.id === id)),
  }),
};

function dnsVersions(name, type) {
  return recordsOf('update_dns_record')
    .map(({ record }) => record)
    .filter((record) => record.name === name && record.type === type);
}

/** Refused before anything was done: the answer says so, and begins with REFUSED. */
class Refusal extends Error {}

const text = (description) => ({ type: 'string', description });
/** Arguments that may be left out; the others are required. */
const OPTIONAL = new Set(['external_ref', 'comment', 'id']);

const DESCRIPTIONS = {
  create_snapshot: [
    'Takes a snapshot of a database. It may take long.',
    { database: text('the database'), label: text('a name for the snapshot') },
  ],
  raise_change_request: [
    'Raises a change request for the change advisory board.',
    {
      service: text('the service that is changed'),
      starts: text('when the change begins, such as 2026-12-05T22:00Z'),
      description: text('what is going to be done'),
      external_ref: text('a reference of the caller, kept with the request'),
    },
  ],
  find_change_request: [
    'Finds change requests by the reference that their callers gave.',
    { external_ref: text('the reference') },
  ],
  update_dns_record: [
    'Sets the value of a DNS record.',
    {
      name: text('the name, such as db.example.com'),
      type: { type: 'string', enum: ['A', 'AAAA', 'CNAME'] },
      value: text('the address or name that it points to'),
      comment: text('kept beside the record'),
    },
  ],
  get_dns_record: ['Reads a DNS record.', { name: text('the name'), type: text('the type, such as A') }],
  decommission_vm: [
    'Destroys a virtual machine with its disks. This cannot be taken back.',
    { vm: text('the machine, such as vm-17'), name: text('its name, to make sure') },
  ],
  get_vm: ['Reads the state of a virtual machine.', { vm: text('the machine, such as vm-17') }],
  list_snapshots: [
    'Lists the snapshots of a database that are complete.',
    { database: text('the database'), id: text('only this one') },
  ],
  notify_team: [
    'Posts a message to a channel. It cannot be found again through this server.',
    { channel: text('the channel'), text: text('the message') },
  ],
  click: ['Presses a button of the migration console.', { button: text('the label of the button') }],
};

function listTools() {
  return Object.entries(DESCRIPTIONS).map(([name, [description, properties]]) => ({
    name,
    description,
    inputSchema: {
      type: 'object',
      additionalProperties: false,
      required: Object.keys(properties).filter((argument) => !OPTIONAL.has(argument)),
      properties,
    },
    annotations: { readOnlyHint: Object.hasOwn(READS, name) },
  }));
}

// ── Faults ───────────────────────────────────────────────────────────────────────────────────────────────────

const DEEDS = new Set([
  'exit',
  'lose_reply',
  'exit_after',
  'take',
  'find_nothing',
  'hide_first',
  'keep_value',
]);

/** The first planned fault that fits and has not fired as often as it should; it counts as fired from here on. */
function nextFault(on) {
  if (faultsFile === undefined) return undefined;
  const fired = entries().filter(({ event }) => event === 'fault');
  const fault = JSON.parse(readFileSync(faultsFile, 'utf8')).find(
    ({ id, on: place, times = 1 }) => place === on && fired.filter((entry) => entry.id === id).length < times,
  );
  if (fault === undefined) return undefined;
  if (!DEEDS.has(fault.do)) {
    throw new Error(`The fault ${fault.id} is to do "${fault.do}", which this server cannot.`);
  }
  append({ event: 'fault', id: fault.id, on, do: fault.do });
  return fault;
}

// ── The protocol ─────────────────────────────────────────────────────────────────────────────────────────────

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const result = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });

async function call(id, { name, arguments: given = {} }) {
  const write = Object.hasOwn(WRITES, name) ? WRITES[name] : undefined;
  const read = Object.hasOwn(READS, name) ? READS[name] : undefined;
  if (write === undefined && read === undefined) {
    say({ id, error: { code: -32602, message: `There is no tool ${name}.` } });
    return;
  }
  const fault = nextFault(name);
  if (fault?.do === 'exit') process.exit(1);
  if (fault?.do === 'take') await pass(fault.ms);
  let answer;
  try {
    const record = (write ?? read)(given);
    if (write !== undefined) append({ event: 'record', tool: name, record: kept(record, fault) });
    answer = result(write === undefined ? listed(record, fault) : record);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    answer = { content: [{ type: 'text', text: `REFUSED: ${error.message}` }], isError: true };
  }
  if (fault?.do === 'exit_after') process.exit(1);
  if (fault?.do !== 'lose_reply') say({ id, result: answer });
}

/** What is written of it, where that is not what is answered. */
function kept(record, fault) {
  if (fault?.do !== 'keep_value') return record;
  return { ...record, value: dnsVersions(record.name, record.type).at(-1)?.value ?? null };
}

function listed(answer, fault) {
  const isEmpty =
    fault?.do === 'find_nothing' || (fault?.do === 'hide_first' && (answer.items ?? []).length < 2);
  return isEmpty ? { ...answer, items: [] } : answer;
}

async function handle({ id, method, params }) {
  switch (method) {
    case 'initialize':
      say({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'cutover', version: '1.0.0' },
        },
      });
      return;
    case 'ping':
      say({ id, result: {} });
      return;
    case 'tools/list':
      say({ id, result: { tools: listTools() } });
      return;
    case 'tools/call':
      await call(id, params);
      return;
    default:
      if (id !== undefined) say({ id, error: { code: -32601, message: `There is no method ${method}.` } });
  }
}

append({ event: 'started' });
if (nextFault('start')?.do === 'exit') process.exit(1);

// Whoever asked may be gone when the answer is ready; what was asked is carried out all the same.
process.stdout.on('error', () => {});
const underWay = new Set();
let rest = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop();
  for (const line of lines) {
    const handled = handle(JSON.parse(line)).finally(() => underWay.delete(handled));
    underWay.add(handled);
  }
});
process.stdin.on('end', () => {
  void Promise.all(underWay).then(() => process.exit(0));
});
