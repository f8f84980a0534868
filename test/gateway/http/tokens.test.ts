import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach, describe, expect, test } from 'vitest';
import {
  CleanUps,
  COUNTERFOIL,
  callsOf,
  counterfoil,
  INITIALIZE,
  LineProcess,
  operationOf,
  operationsIn,
  type ToolResult,
  textOf,
  toolsServer,
} from '../processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const TOOLS = [
  { name: 'note', inputSchema: { type: 'object' } },
  { name: 'erase', inputSchema: { type: 'object' } },
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
];
const RULES =
  'tools: {note: {class: ordinary, repeat: unique}, erase: {class: irreversible}}\nlimits: {writes_per_hour: 1000}';

function world() {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  const entries: Record<string, object> = {};
  for (const name of ['one', 'two']) {
    const own = join(folder, name);
    mkdirSync(own);
    writeFileSync(join(own, 'tools.json'), JSON.stringify(TOOLS));
    writeFileSync(join(folder, `${name}.yaml`), `destination: ${name}\n${RULES}\n`);
    const [command, ...args] = toolsServer(own);
    entries[name] = { command, args, config: `${name}.yaml` };
  }
  const write = (more: object = {}): string => {
    const file = join(folder, 'mcp.json');
    writeFileSync(file, JSON.stringify({ mcpServers: { ...entries, ...more } }));
    return file;
  };
  return {
    folder,
    data,
    write,
    token: async (name: string, ...more: string[]): Promise<string> => {
      const ran = await counterfoil(['token', 'create', name, '--data', data, ...more]);
      expect(ran.stderr).toMatch(/shown this once/);
      expect(ran.stdout).toMatch(/^cft_[\w-]{43}\n$/);
      return ran.stdout.trim();
    },
    revoke: (name: string) => counterfoil(['token', 'revoke', name, '--data', data]),
    async serve(file = write(), ...more: string[]) {
      const gateway = cleanUps.started(
        new LineProcess(process.execPath, [
          COUNTERFOIL,
          ...['serve', '--config', file, '--data', data, '--port', '0', ...more],
        ]),
      );
      cleanUps.add(() => gateway.kill('SIGTERM'));
      await gateway.says('recorded in');
      const port = Number(/http:\/\/[^:]+:(\d+)\//.exec(gateway.stderr)?.[1]);
      const at = (name: string): URL => new URL(`http://127.0.0.1:${port}/mcp/${name}`);
      return {
        gateway,
        port,
        at,
        ask: (name: string, headers: Record<string, string> = {}) =>
          fetch(at(name), {
            method: 'POST',
            headers: {
              'content-type': 'application/json',
              accept: 'application/json, text/event-stream',
              ...headers,
            },
            body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE }),
          }),
        async client(name: string, token?: string): Promise<Client> {
          const client = new Client({ name: 'test', version: '1' });
          const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
          await client.connect(new StreamableHTTPClientTransport(at(name), { requestInit: { headers } }));
          cleanUps.add(() => client.close());
          return client;
        },
      };
    },
  };
}

async function call(client: Client, name: string, args: object = {}): Promise<ToolResult> {
  return (await client.callTool({ name, arguments: { ...args } })) as ToolResult;
}

async function told(
  response: Response,
): Promise<{ status: number; challenge: string | null; message: string }> {
  const body = (await response.json()) as { error: { message: string } };
  return {
    status: response.status,
    challenge: response.headers.get('www-authenticate'),
    message: body.error.message,
  };
}

describe('counterfoil serve with tokens', () => {
  test('the holder of a token is the principal under whom its writes are recorded', async () => {
    const { data, serve, token } = world();
    const ci = await token('ci');
    const { client } = await serve();
    const agent = await client('one', ci);
    expect(textOf(await call(agent, 'note', { n: 1 }))).toBe('did note');
    expect(await operationsIn(data)).toMatchObject([{ requester: 'token:ci', effect: 'accepted' }]);
  });

  test('each refusal is one sentence, under the status and the challenge that say what it is', async () => {
    const { data, folder, serve, token, revoke } = world();
    const scoped = await token('scoped', '--server', 'one');
    const gone = await token('gone');
    const { ask } = await serve();
    expect((await ask('one', { authorization: `Bearer ${scoped}` })).status).toBe(200);
    const REFUSED: readonly (readonly [Record<string, string>, string, number, RegExp, RegExp])[] = [
      [{}, 'one', 401, /^Bearer realm="counterfoil"$/, /^A token is needed/],
      [{ authorization: 'Basic Og==' }, 'one', 401, /error="invalid_request"/, /no Bearer token/],
      [{ authorization: 'Bearer secret' }, 'one', 401, /error="invalid_token"/, /begins with cft_/],
      [
        { authorization: `Bearer cft_${'A'.repeat(43)}` },
        'one',
        401,
        /error="invalid_token"/,
        /not known here/,
      ],
      [
        { authorization: `Bearer ${scoped}` },
        'two',
        403,
        /error="insufficient_scope"/,
        /^The token scoped does not open the server two\.$/,
      ],
    ];
    for (const [headers, name, status, challenge, message] of REFUSED) {
      const refusal = await told(await ask(name, headers));
      expect(refusal.status).toBe(status);
      expect(refusal.challenge).toMatch(challenge);
      expect(refusal.message).toMatch(message);
      expect(refusal.message).not.toContain('secret');
    }
    // Revoked by another process, and refused with the next request of a session that was open.
    const headers = { authorization: `Bearer ${gone}` };
    expect((await ask('one', headers)).status).toBe(200);
    expect((await revoke('gone')).code).toBe(0);
    expect(await told(await ask('one', headers))).toMatchObject({ status: 401, message: /revoked/ });
    // The last one is gone, and the door stays closed.
    await revoke('scoped');
    expect((await ask('one')).status).toBe(401);
    expect(callsOf(join(folder, 'one'), 'note')).toEqual([]);
    expect(await operationsIn(data)).toEqual([]);
  });

  test('one for reading reads, and its writes are not sent', async () => {
    const { data, serve, token } = world();
    const reader = await token('reader', '--read-only');
    const { client } = await serve();
    const agent = await client('one', reader);
    expect(textOf(await call(agent, 'look'))).toBe('did look');
    const refused = await call(agent, 'note', { n: 1 });
    expect(refused.isError).toBe(true);
    expect(textOf(refused)).toMatch(/^NOT SENT — this token opens one for reading only, and "note" writes\./);
    expect(await operationsIn(data)).toEqual([]);
  });

  test('one for reading writes nothing in observe either, and asks for no second one', async () => {
    const { data, folder, serve, token } = world();
    writeFileSync(join(folder, 'two.yaml'), `destination: two\nmode: observe\n${RULES}\n`);
    const [reader, writer] = [await token('reader', '--read-only'), await token('writer')];
    const { client } = await serve();
    const observed = await client('two', reader);
    expect(textOf(await call(observed, 'look'))).toBe('did look');
    for (const tool of ['note', 'erase', 'unheard']) {
      expect(textOf(await call(observed, tool, { n: 1 }))).toMatch(
        /^NOT SENT — this token opens two for reading/,
      );
    }
    expect(await operationsIn(data)).toEqual([]);
    expect(textOf(await call(await client('two', writer), 'note', { n: 1 }))).toBe('did note');
    expect(callsOf(join(folder, 'two'), 'note')).toHaveLength(1);
    const guarded = await client('one', reader);
    const [done] = await operationsIn(data);
    const asked = { operation: done?.id ?? '', again: true, reason: 'once more' };
    expect(textOf(await call(guarded, 'counterfoil_operation_status', asked))).toMatch(
      /^NOT SENT — this token/,
    );
    expect(await operationsIn(data)).toHaveLength(1);
  });

  test('a name is given once, an expired token is told as such, and the list shows no token', async () => {
    const { data, token, serve, revoke } = world();
    const first = await token('ci', '--expires', 'PT0.001S');
    const again = await counterfoil(['token', 'create', 'ci', '--data', data]);
    expect(again.code).toBe(5);
    expect(again.stderr).toMatch(/There is a token ci, or there was/);
    await token('agent', '--server', 'one', '--read-only', '--expires', '30d');
    const list = await counterfoil(['token', 'list', '--data', data]);
    expect(list.stdout).toMatch(/^agent {2}until \d{4}.* UTC: reads at one, made by /m);
    expect(list.stdout).toMatch(/^ci {2}expired: reads and writes at every server, made by /m);
    expect(list.stdout).not.toMatch(/cft_|[0-9a-f]{64}/);
    const { ask } = await serve();
    expect(await told(await ask('one', { authorization: `Bearer ${first}` }))).toMatchObject({
      status: 401,
      message: /expired/,
    });
    expect((await revoke('nobody')).code).toBe(3);
    for (const bad of [['a b'], ['x', '--server', '../x'], ['x', '--expires', 'soon']]) {
      expect((await counterfoil(['token', 'create', ...bad, '--data', data])).code).toBe(2);
    }
  });

  test('another host than loopback needs a token first', async () => {
    const { data, write, token, serve } = world();
    const file = write();
    const refused = await counterfoil([
      'serve',
      '--config',
      file,
      '--data',
      data,
      '--host',
      '0.0.0.0',
      '--port',
      '0',
    ]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/can be reached from other machines, and nobody has a token yet/);
    const ci = await token('ci');
    const { ask } = await serve(file, '--host', '0.0.0.0');
    expect((await ask('one')).status).toBe(401);
    expect((await ask('one', { authorization: `Bearer ${ci}` })).status).toBe(200);
  });
});

describe('servers from the file of an MCP client', () => {
  test('one that cannot be served is listed with its sentence, while the others work', async () => {
    const { data, folder, serve, write } = world();
    const file = write({
      lost: { command: '${NOT_SET_ANYWHERE}' },
      badly: { command: 'it', config: 'missing.yaml' },
      twin: { command: 'it', config: 'one.yaml' },
    });
    const listed = await counterfoil(['servers', '--config', file, '--json']);
    expect(listed.code).toBe(2);
    expect(JSON.parse(listed.stdout)).toMatchObject({
      servers: [
        { name: 'one', served: true, path: '/mcp/one' },
        { name: 'two', served: true },
        { name: 'lost', served: false, problem: 'It uses the variable NOT_SET_ANYWHERE, which is not set.' },
        { name: 'badly', served: false },
        { name: 'twin', served: false, problem: /destination one, as one is/ },
      ].map((each) =>
        'problem' in each && each.problem instanceof RegExp ? { name: each.name, served: false } : each,
      ),
    });
    const { gateway, ask, client } = await serve(file);
    expect(gateway.stderr).toMatch(
      /lost cannot be served\. It uses the variable NOT_SET_ANYWHERE, which is not set\./,
    );
    expect(gateway.stderr).toMatch(
      /badly cannot be served\. .*missing\.yaml cannot be read: there is no such file/,
    );
    expect(gateway.stderr).toMatch(/twin cannot be served\. It is the destination one, as one is/);
    expect(await told(await ask('lost'))).toMatchObject({ status: 503, message: /NOT_SET_ANYWHERE/ });
    const agent = await client('two');
    expect(textOf(await call(agent, 'note', { n: 1 }))).toBe('did note');
    expect(callsOf(join(folder, 'two'), 'note')).toHaveLength(1);
    expect(await operationsIn(data)).toHaveLength(1);
  });

  test('where none can be served nothing is started', async () => {
    const { data, folder } = world();
    const file = join(folder, 'none.json');
    writeFileSync(file, JSON.stringify({ mcpServers: { a: { url: '${UNSET_A}' } } }));
    const ran = await counterfoil(['serve', '--config', file, '--data', data]);
    expect(ran.code).toBe(2);
    expect(ran.stderr).toMatch(
      /a cannot be served\. It uses the variable UNSET_A.*\nNone of the servers can be served/,
    );
  });
});

describe('two principals at once', () => {
  /** Sessions of two agents in turn; gives the words of the destination's answers that each of them has seen. */
  async function interleaved(
    tokens: readonly [string, string],
    sessions: number,
    place: ReturnType<typeof world>,
  ) {
    writeFileSync(join(place.folder, 'one', 'plan.json'), JSON.stringify({ note: { does: 'echo' } }));
    const { client } = await place.serve();
    const seen = [new Set<string>(), new Set<string>()] as const;
    let next = 0;
    const work = async (): Promise<void> => {
      for (let index = next++; index < sessions; index = next++) {
        const who = (index % 2) as 0 | 1;
        const pair = index - who;
        const agent = await client('one', tokens[who]);
        const own = await call(agent, 'note', { of: who, index });
        expect(textOf(own)).toMatch(new RegExp(`^{"index":${index},"of":${who}} only-`));
        // Its neighbour asks for the same in the same words, in a run of the same name, at the same time.
        const shared = await agent.callTool({
          name: 'note',
          arguments: { pair },
          _meta: { 'counterfoil/run': `run-${pair}` },
        });
        // And each asks after an operation that is the other's as likely as not.
        const [first] = await operationsIn(place.data);
        const id = first?.id ?? '';
        const status = await call(agent, 'counterfoil_operation_status', { operation: id });
        for (const result of [own, shared as ToolResult, status]) {
          for (const [word] of textOf(result).matchAll(/only-[\w-]+/g)) seen[who].add(word);
        }
        await agent.close();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return seen;
  }
  const AT_ONCE = 8;

  test('200 interleaved sessions: no answer of the destination is seen by both', {
    timeout: 180_000,
  }, async () => {
    const place = world();
    const tokens = [await place.token('mara'), await place.token('otto')] as const;
    const [hers, his] = await interleaved(tokens, 200, place);
    expect(hers.size).toBeGreaterThanOrEqual(100);
    expect(his.size).toBeGreaterThanOrEqual(100);
    expect([...hers].filter((word) => his.has(word))).toEqual([]);
    const operations = await operationsIn(place.data);
    expect(new Set(operations.map(({ requester }) => requester))).toEqual(
      new Set(['token:mara', 'token:otto']),
    );
  });

  test('the check goes red where both are one principal: then they do share answers', async () => {
    const place = world();
    const both = await place.token('both');
    const [hers, his] = await interleaved([both, both], 8, place);
    expect([...hers].filter((word) => his.has(word))).not.toEqual([]);
  });

  test("an operation of another is told without anybody's words", async () => {
    const { serve, token } = world();
    const [mara, otto] = [await token('mara'), await token('otto')];
    const { client } = await serve();
    const hers = await client('one', mara);
    const id = operationOf(await call(hers, 'erase', { n: 1 }));
    const his = await client('one', otto);
    const asked = await call(his, 'counterfoil_operation_status', { operation: id });
    expect(textOf(asked)).toMatch(/^NOT SENT YET — /);
    const elsewhere = await client('two', otto);
    const unknown = await call(elsewhere, 'counterfoil_operation_status', { operation: id });
    expect(textOf(unknown)).toMatch(/^No operation /);
  });
});
