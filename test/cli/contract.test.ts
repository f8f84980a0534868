// `counterfoil contract` and `counterfoil blueprint`, as they are installed: what they print, and with which code they end.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { BINDING, CONFIG, CONTRACT, changed } from '../contracts/texts.ts';
import { CleanUps, counterfoil } from '../gateway/processes.ts';
import { ROOT } from '../house/source.ts';

const cleanUps = new CleanUps();
afterAll(() => cleanUps.run());

const folder = cleanUps.folder();

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe('counterfoil contract check', () => {
  test('the shipped contracts: no error, every write explained', async () => {
    const { code, stderr, stdout } = await counterfoil(['contract', 'check']);
    expect(stderr).toMatch(/^28 contracts checked: 0 errors, \d+ notes\.\n$/);
    expect(code).toBe(0);
    expect(stdout).toContain('stripe, revision 1: Stripe API v1 (http), stripe.contract.yaml');
    const json = await counterfoil(['contract', 'check', '--json']);
    const { contracts } = JSON.parse(json.stdout) as {
      contracts: { problems: unknown[]; operations: { explained: unknown[] }[] }[];
    };
    expect(contracts.flatMap(({ problems }) => problems)).toEqual([]);
    for (const { explained } of contracts.flatMap(({ operations }) => operations)) {
      expect(explained.length).toBeGreaterThan(3);
    }
  });

  test('a file that is wrong ends with 2, line and column of each fault, and the others are told', async () => {
    const wrong = write(
      'wrong.yaml',
      changed(changed(CONTRACT, 'effect: create', 'effect: make'), '{$stamp}', '{$stump}'),
    );
    const right = write('right.yaml', CONTRACT);
    const { code, stdout } = await counterfoil(['contract', 'check', wrong, right]);
    expect(code).toBe(2);
    expect(stdout).toContain(
      `${wrong} is refused:\n  ${wrong}:9:13: operations[0].effect is "make"; allowed are`,
    );
    expect(stdout).toContain(
      '  task.create (create_task)\n    guard      none: nothing makes a second sending safe\n',
    );
    expect(stdout).toContain(
      '    by itself  When the reply is lost, it is looked up by us by client reference',
    );
  });

  test('a template that names an argument which the tool does not have is told beside a list of tools', async () => {
    const contract = write('c.yaml', CONTRACT);
    const tools = write(
      'tools.json',
      JSON.stringify({
        tools: [
          {
            name: 'create_task',
            inputSchema: { type: 'object', properties: { projekt: {}, title: {}, reference: {} } },
          },
        ],
      }),
    );
    const { code, stdout } = await counterfoil(['contract', 'check', contract, '--tools', tools]);
    expect(code).toBe(2);
    expect(stdout).toContain(
      'The identity of create_task names the argument project, which the tool does not have; did you mean projekt?',
    );
  });

  test('before it goes live: owner and ways back are named, or waived by name', async () => {
    write('tasks.contract.yaml', CONTRACT);
    write('tasks.binding.yaml', BINDING);
    const open = write('open.yaml', CONFIG);
    const first = await counterfoil(['contract', 'check', '--config', open]);
    expect(first.code).toBe(2);
    expect(first.stdout).toContain('add_comment has no owner, neither here nor in its contract');
    const agreed = write(
      'agreed.yaml',
      `${CONFIG}owner: platform team
recovery: {nobody_acted: cancel it, somebody_acted: ask them}
waivers: [{what: route_missing, by: Mara, on: 2026-11-30, because: the pilot has one user}]
`,
    );
    const second = await counterfoil(['contract', 'check', '--config', agreed]);
    expect(second.stdout).toContain('[route_missing, waived by Mara on 2026-11-30: the pilot has one user]');
    expect(second.code).toBe(0);
  });

  test('a configuration that goes on trying for longer than a key is known is refused with both numbers', async () => {
    write('zendesk.contract.yaml', readShippedContract('zendesk-tickets'));
    const config = write(
      'long.yaml',
      `destination: tickets
contracts: [zendesk.contract.yaml]
tools: {create_ticket: {class: ordinary, contract_operation: zendesk-tickets/ticket.create}}
limits: {elapsed: PT24H}
`,
    );
    const { code, stderr } = await counterfoil(['contract', 'check', '--config', config]);
    expect(code).toBe(2);
    expect(stderr).toContain(
      `${config}:4:19: limits.elapsed lets tries go on for PT24H, and the contract zendesk-tickets promises that the key of create_ticket is known for PT2H; at most PT2H is allowed`,
    );
  });

  test.each([
    [['contract', 'check', '/nowhere.yaml'], '/nowhere.yaml cannot be read: there is no such file.'],
    [
      ['contract', 'check', 'zendsk-tickets'],
      'no contract of that name is shipped; did you mean zendesk-tickets?',
    ],
    [['contract', 'draft'], 'A draft is made of one description: --openapi FILE, --tools FILE with'],
    [
      ['contract', 'check', '--tools', '/nowhere.json'],
      '/nowhere.json cannot be read: there is no such file.',
    ],
    [['blueprint', '--html', '--json'], 'One form at a time: --html or --json.'],
  ])('%j ends with 2 and says why', async (args, sentence) => {
    const { code, stderr, stdout } = await counterfoil(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(sentence);
  });
});

function readShippedContract(id: string): string {
  return readFileSync(new URL(`../../src/contracts/catalogue/${id}.contract.yaml`, import.meta.url), 'utf8');
}

describe('counterfoil contract draft', () => {
  test('a draft from a list of tools is a file that the check takes', async () => {
    const tools = write(
      'listed.json',
      JSON.stringify({ tools: [{ name: 'create_note', inputSchema: { properties: { text: {} } } }] }),
    );
    const drafted = await counterfoil(['contract', 'draft', '--tools', tools, '--id', 'notes']);
    expect(drafted.code).toBe(0);
    expect(drafted.stderr).toMatch(/^1 write, and all of it is assumed/);
    const contract = write('notes.contract.yaml', drafted.stdout);
    const checked = await counterfoil(['contract', 'check', contract, '--tools', tools]);
    expect(checked.code).toBe(0);
    expect(checked.stdout).toContain('    open       By what is it found again when its reply was lost?');
  });
});

describe('counterfoil contract draft -- COMMAND', () => {
  test('an unmodified server is asked for its tools, and nothing of it is called', async () => {
    const memory = join(folder, 'memory.jsonl');
    const server = join(ROOT, 'node_modules/@modelcontextprotocol/server-memory/dist/index.js');
    const drafted = await counterfoil(
      ['contract', 'draft', '--id', 'memory', '--json', '--', process.execPath, server],
      { env: { MEMORY_FILE_PATH: memory } },
    );
    const { operations } = JSON.parse(drafted.stdout) as { readonly operations: readonly { id: string }[] };
    expect(operations.map(({ id }) => id)).toEqual([
      'create_entities',
      'create_relations',
      'add_observations',
      'delete_entities',
      'delete_observations',
      'delete_relations',
    ]);
    expect(existsSync(memory)).toBe(false);
  });

  test('a server that ends is told of with its last words', async () => {
    const ends = 'console.error("no key was given"); process.exit(3)';
    const drafted = await counterfoil(['contract', 'draft', '--', process.execPath, '-e', ends]);
    expect(drafted.code).toBe(2);
    expect(drafted.stderr).toMatch(
      /^counterfoil: The server \S+ did not list its tools: the MCP server ended with exit code 3; it said: no key was given\.\n$/,
    );
  });
});

describe('counterfoil blueprint', () => {
  test('of a configuration, for a terminal, as JSON and as a page without scripts', async () => {
    write('tasks.contract.yaml', CONTRACT);
    write('tasks.binding.yaml', BINDING);
    const config = write('gateway.yaml', `${CONFIG}owner: <b>ops & co</b>\n`);
    const text = await counterfoil(['blueprint', '--config', config]);
    expect(text.stdout).toContain('tasks-eu, mode guard: 3 kinds of writes, 2 reads\n');
    expect(text.stdout).toContain('    approved by   its owner, on each call, with the passphrase\n');
    const json = JSON.parse((await counterfoil(['blueprint', '--config', config, '--json'])).stdout);
    expect(json.destinations[0].tools[0]).toMatchObject({ tool: 'create_task', owner: '<b>ops & co</b>' });
    const { stdout: page } = await counterfoil(['blueprint', '--config', config, '--html']);
    expect(page).toMatch(/^<!doctype html>\n/);
    expect(page).toContain('<dt>Owner</dt><dd>&lt;b&gt;ops &amp; co&lt;/b&gt;</dd>');
    expect(page).not.toMatch(/<script|<b>|https?:\/\//);
  });

  test('of a destination over HTTP: the guard with its window, and what follows', async () => {
    write('zendesk.contract.yaml', readShippedContract('zendesk-tickets'));
    const config = write(
      'zendesk.destination.yaml',
      `destination: support
url: http://127.0.0.1:9/api/v2
contract: zendesk.contract.yaml
owner: service desk
tools: {ticket.create: {class: ordinary, may_stop: [on-call]}}
`,
    );
    const { stdout } = await counterfoil(['blueprint', '--config', config]);
    expect(stdout).toContain('    guard         request key (Idempotency-Key): known for at least PT2H');
    expect(stdout).toContain('    owner         service desk\n');
    expect(stdout).toContain('    may stop      on-call\n');
    expect(stdout).toContain(
      'it is sent again by us, byte for byte and under its request key (Idempotency-Key).',
    );
    const check = await counterfoil(['contract', 'check', '--config', config]);
    expect([check.code, check.stdout]).toEqual([2, expect.stringContaining('[route_missing]')]);
  });

  test('of a shipped binding; a name that is not shipped is told with the nearest', async () => {
    const shipped = await counterfoil(['blueprint', '--server', 'server-memory']);
    expect(shipped.stdout).toContain('entities.delete');
    const wrong = await counterfoil(['blueprint', '--server', 'server-memry']);
    expect([wrong.code, wrong.stderr]).toEqual([3, expect.stringContaining('did you mean server-memory?')]);
  });

  test('of nothing that is in force: what to do', async () => {
    const { code, stderr } = await counterfoil(['blueprint', '--data', cleanUps.folder()]);
    expect(code).toBe(3);
    expect(stderr).toContain('counterfoil blueprint --config FILE');
  });
});
