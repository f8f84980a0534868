// The first minutes of somebody who installs Counterfoil: a fresh home, three clients' files, four servers that are not
// ours. `init`, reads, writes with ordinary mistakes, one that cannot be taken back, `report`, `leave`. What each server
// has done is counted on the disk; what a client's file was, it must be again.
//
//   npm run first-minutes [-- --json] [-- --aloud] [-- --break WHAT]
//
// --aloud prints on standard error what each command said. --break damages one thing, and the run must go red.

import { appendFileSync, mkdtempSync, rmSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { IRREVERSIBLE, MEMORY_AFTER, NOTES_AFTER, reads, writes } from './calls.mjs';
import { connect } from './connection.mjs';
import { NewHome } from './home.mjs';
import { notionService } from './notion-service.mjs';
import { Steps } from './steps.mjs';

const SERVERS = ['files', 'memory', 'notion', 'playwright'];
const HELPER = 'counterfoil_operation_status';
/** No secret: it is the owner's of a home that is removed afterwards. */
const PASSPHRASE = 'the owner of this home';
const OPERATION = /op_[0-9A-Z]{26}/;

const BREAKS = {
  'touch-file': "a client's file is touched after leave",
  'lose-write': 'what a write has made is removed before it is counted',
  'change-read': 'one byte of a read is another',
  'ask-unsaid': 'init had said that what waits is sent',
};

const NOT_CHECKED = [
  "Notion's own service, and an account there: a service on loopback answers its server's reads",
  'a browser: Playwright has none here, and its reads answer that',
  "the clients' own programs: their files are theirs in place and form, and an SDK client starts what they say",
  'npx fetching the package from a registry: it was packed from this checkout, and installed from that file',
  'a model: the calls are written down',
];

const { values } = parseArgs({
  options: {
    app: { type: 'string' },
    servers: { type: 'string' },
    json: { type: 'boolean' },
    aloud: { type: 'boolean' },
    break: { type: 'string' },
  },
});
if (values.break !== undefined && BREAKS[values.break] === undefined) {
  const lines = Object.entries(BREAKS).map(([name, what]) => `  ${name.padEnd(12)} ${what}`);
  process.stderr.write(`--break is one of\n${lines.join('\n')}\n`);
  process.exit(2);
}
const isBroken = (what) => values.break === what;

const folder = mkdtempSync(join(tmpdir(), 'counterfoil-first-minutes-home-'));
const service = await notionService();
const home = new NewHome(folder, { app: values.app, servers: values.servers, notionUrl: service.url });
const steps = new Steps({ isJson: values.json === true });
const open = new Map();
try {
  await firstMinutes();
} finally {
  await Promise.allSettled([...open.values()].map((connection) => connection.close()));
  service.close();
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = steps.end(NOT_CHECKED) ? 0 : 1;

// ── What is done ─────────────────────────────────────────────────────────────────────────────────────────────

async function firstMinutes() {
  const before = home.clients();
  const direct = new Map();
  const classes = new Map();
  const waited = new Set();

  await steps.step('the four servers, without us', async () => {
    await connectAll();
    direct.set('tools', await listAll());
    direct.set('reads', await readAll());
    await closeAll();
    return `${sum([...direct.get('tools').values()])} tools listed, ${direct.get('reads').length} reads`;
  });

  await steps.step('init --dry-run: looked at, nothing written', async (expect) => {
    const said = await command('init', '--dry-run', '--yes', '--json');
    const servers = JSON.parse(said.stdout).files.flatMap((file) => file.servers);
    for (const { name, tools } of servers)
      for (const tool of tools ?? []) classes.set(`${name} ${tool.name}`, tool.class);
    if (isBroken('ask-unsaid')) classes.set(`${IRREVERSIBLE.server} ${IRREVERSIBLE.tool}`, 'ordinary');
    const seen = servers.filter(({ tools }) => tools !== null).map(({ name }) => name);
    expect(said.code === 0, `it ended with ${said.code}`);
    expect(isDeepStrictEqual(seen.toSorted(), SERVERS), `it saw the tools of ${seen.join(', ')}`);
    expect(isDeepStrictEqual(home.clients(), before), 'a file is another already');
    return `${seen.length} servers, ${classes.size} tools by class`;
  });

  await steps.step('init --yes', async (expect) => {
    const said = await command('init', '--yes');
    expect(said.code === 0, `it ended with ${said.code}: ${said.stderr}`);
    const guarded = SERVERS.filter((name) => home.entry(name).args.includes('--name'));
    expect(guarded.length === SERVERS.length, `behind us are only ${guarded.join(', ')}`);
    return `${guarded.length} entries start their server through us`;
  });

  await steps.step('each server, by the entry that init wrote', async (expect) => {
    await connectAll();
    const tools = await listAll();
    for (const [name, listed] of tools) {
      const own = listed.slice(0, -1);
      expect(listed.at(-1)?.name === HELPER, `${name} has no ${HELPER}`);
      expect(isDeepStrictEqual(own, direct.get('tools').get(name)), `${name} lists other tools than before`);
    }
    return `the same tools, and ${HELPER}`;
  });

  await steps.step('20 reads', async (expect) => {
    const lines = await readAll();
    if (isBroken('change-read')) lines[0] = `${lines[0]} `;
    const different = reads(home.notes).filter((_, index) => lines[index] !== direct.get('reads')[index]);
    expect(lines.length === 20, `they are ${lines.length}`);
    for (const { server, tool } of different)
      expect(false, `${tool} of ${server} is another than without us`);
    return `${lines.length - different.length} answers byte for byte as without us`;
  });

  const planned = writes(home.notes);
  await steps.step('12 writes, five of them ordinary mistakes', async (expect) => {
    expect(planned.length === 12, `they are ${planned.length}`);
    for (const write of planned) {
      const { result, text } = await call(write);
      if (text.startsWith('NOT SENT YET')) waited.add(`${write.server} ${write.tool}`);
      expect(write.says.test(text), `${write.tool}: ${text}`);
      expect((result.isError === true) === (write.mistake !== undefined), `${write.tool}: isError is wrong`);
    }
    const mistakes = planned.filter(({ mistake }) => mistake !== undefined);
    return `${planned.length - mistakes.length} done, ${mistakes.length} answered in the server's own words`;
  });

  let id = '';
  await steps.step('one that cannot be taken back', async (expect) => {
    const { text } = await call(IRREVERSIBLE);
    if (text.startsWith('NOT SENT YET')) waited.add(`${IRREVERSIBLE.server} ${IRREVERSIBLE.tool}`);
    id = OPERATION.exec(text)?.[0] ?? '';
    expect(id !== '' && waited.size > 0, `it was answered with: ${text}`);
    expect(isThere('Old plan'), 'it is carried out already');
    return 'it waits, and nothing has reached the server';
  });

  await steps.step('waits are where init said so, and only there', async (expect) => {
    const asking = [...planned, IRREVERSIBLE]
      .map(({ server, tool }) => `${server} ${tool}`)
      .filter((name) => ['irreversible', 'unclassified'].includes(classes.get(name)));
    const [found, said] = [waited, new Set(asking)].map((names) => [...names].join(', '));
    expect(found === said, `waited: ${found}; init said: ${said === '' ? 'none' : said}`);
    return found;
  });

  await steps.step('queue, show, passphrase, approve', async (expect) => {
    const queue = await command('queue');
    expect(queue.code === 0 && queue.stdout.includes(id), `the queue does not show ${id}`);
    const without = await command('approve', id, '--digest', digestIn(queue.stdout));
    expect(without.code === 4, `without a passphrase it ended with ${without.code}`);
    const shown = await command('show', id);
    expect(shown.stdout.includes('"Old plan"'), 'what is asked is not shown');
    const set = await typed(['passphrase', 'set'], [PASSPHRASE, PASSPHRASE]);
    expect(set.code === 0, `passphrase set ended with ${set.code}: ${set.stderr}`);
    const approved = await typed(['approve', id, '--digest', digestIn(queue.stdout)], [PASSPHRASE]);
    expect(approved.screen.includes('Old plan'), 'what is sent is not shown where it is approved');
    expect(
      approved.code === 0 || approved.code === 10,
      `approve ended with ${approved.code}: ${approved.stderr}`,
    );
    const status = await call({
      server: IRREVERSIBLE.server,
      tool: HELPER,
      args: { operation: id, wait_s: 20 },
    });
    expect(status.text.startsWith('VERIFIED'), `the agent is told: ${status.text}`);
    return `the agent is told ${status.text.split(' ')[0]}`;
  });

  await steps.step('at the destinations, each write once', async (expect) => {
    if (isBroken('lose-write')) unlinkSync(join(home.notes, 'done/plan.md'));
    const [notes, memory] = [home.notesNow(), home.memoryNow()];
    expect(isDeepStrictEqual(notes, NOTES_AFTER), `the notes are ${JSON.stringify(notes)}`);
    expect(isDeepStrictEqual(memory, MEMORY_AFTER), `the memory is ${JSON.stringify(memory)}`);
    expect(service.asked.length === 6, `Notion's service was asked ${service.asked.join(', ')}`);
    return `${Object.keys(notes).length} files, ${memory.length} lines of memory, and nothing of a mistake`;
  });

  await steps.step('report, find', async (expect) => {
    await command('report');
    const { operations, tools, unclear } = JSON.parse((await command('report', '--json')).stdout);
    const effects = tools.flatMap((tool) => Object.entries(tool.effects));
    const count = (wanted) => sum(effects.map(([effect, number]) => (effect === wanted ? number : 0)));
    expect(operations === 13, `${operations} operations are recorded`);
    expect(count('rejected') === 5, `rejected are ${count('rejected')}`);
    // Two of the kinds cannot be read back, and their contracts say so.
    const done = count('verified') + count('accepted');
    expect(count('verified') === 6 && done === 8, `effects: ${JSON.stringify(effects)}`);
    expect(unclear.length === 0, `unclear: ${JSON.stringify(unclear)}`);
    const { matches } = JSON.parse((await command('find', id.slice(0, -4), '--json')).stdout);
    expect(matches[0]?.operation === id, `find gives ${JSON.stringify(matches)}`);
    return `${operations} operations: ${count('verified')} verified, ${count('accepted')} accepted, ${count('rejected')} rejected`;
  });

  await steps.step('queue: nothing waits, nothing is parked', async (expect) => {
    await command('queue');
    const { operations } = JSON.parse((await command('queue', '--json')).stdout);
    expect(
      operations.length === 0,
      `there are ${operations.map(({ operation }) => operation.stage).join(', ')}`,
    );
    return `parked 0, waiting ${operations.length}`;
  });

  await steps.step('doctor', async (expect) => {
    const said = await command('doctor');
    expect(said.code === 0, `it ended with ${said.code}`);
    return said.stdout.trim().split('\n').at(-1);
  });

  await closeAll();
  await steps.step('leave --yes: every file as it was', async (expect) => {
    const said = await command('leave', '--yes');
    expect(said.code === 0, `it ended with ${said.code}: ${said.stderr}`);
    if (isBroken('touch-file')) appendFileSync(home.clientFiles[1], '\n');
    const after = home.clients();
    const different = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
      (file) => before[file] !== after[file],
    );
    for (const file of different) expect(false, `${file} is another than before init`);
    return `${Object.keys(after).length - different.length} files byte for byte`;
  });
}

// ── Doing it ─────────────────────────────────────────────────────────────────────────────────────────────────

async function connectAll() {
  const connections = await Promise.all(SERVERS.map((name) => connect(home.entry(name), home.env)));
  for (const [index, name] of SERVERS.entries()) open.set(name, connections[index]);
}

async function closeAll() {
  await Promise.all([...open.values()].map((connection) => connection.close()));
  open.clear();
}

async function listAll() {
  const lists = new Map();
  for (const name of SERVERS) lists.set(name, await open.get(name).tools());
  return lists;
}

/** The lines of the answers, each as it came. */
async function readAll() {
  const lines = [];
  for (const read of reads(home.notes)) lines.push((await call(read)).line);
  return lines;
}

async function call({ server, tool, args }) {
  return open.get(server).call(tool, args);
}

async function command(...args) {
  const ran = await home.run(...args);
  if (values.aloud) process.stderr.write(`\n$ counterfoil ${args.join(' ')}\n${ran.stderr}${ran.stdout}`);
  return ran;
}

async function typed(args, answers) {
  const ran = await home.onTerminal(args, answers);
  const said = `${ran.screen.replaceAll('\r', '')}${ran.stderr}${ran.stdout}`;
  if (values.aloud) process.stderr.write(`\n$ counterfoil ${args.join(' ')}\n${said}`);
  return ran;
}

function digestIn(text) {
  return /--digest ([0-9a-f]{12,})/.exec(text)?.[1] ?? '';
}

function isThere(entity) {
  return home.memoryNow().some(({ name }) => name === entity);
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + (Array.isArray(each) ? each.length : each), 0);
}
