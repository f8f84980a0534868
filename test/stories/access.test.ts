// Access that ends between an approval and the send, at our own door and where the identities are kept: a team's gateway
// as it is installed, and a destination with a log of its own, in which is counted.

import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { hashOfToken, tokenText } from '../../src/access/tokens.ts';
import { composeLedger } from '../../src/compose.ts';
import { startServing } from '../gateway/http/serving.ts';
import {
  CleanUps,
  callsOf,
  counterfoil,
  operationsIn,
  ownerOf,
  toolsServer,
  untilAsync,
} from '../gateway/processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

const NAMES = ['planner', 'helper', 'clerk', 'guest'] as const;
const DONE = { content: [{ type: 'text', text: 'done' }] };

/** Whoever knows of identities: a program that says of each name what a file says, and nothing of who is not in it. */
const DIRECTORY = `import { readFileSync } from 'node:fs';
const known = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const access = known[process.argv[3]];
if (access === undefined) process.exit(1);
process.stdout.write(JSON.stringify({ access }));
`;

describe('access that ends between the approval and the send', { timeout: 90_000 }, () => {
  test('[S6a] [S6b] of whoever asked, of whoever approved, at the identity provider: each is held with its name, and the destination has got nothing', async () => {
    const folder = cleanUps.folder();
    const data = join(folder, 'data');
    const local = `local:${userInfo().username}`;
    writeFileSync(
      join(folder, 'tools.json'),
      JSON.stringify([{ name: 'erase', inputSchema: { type: 'object' } }]),
    );
    writeFileSync(join(folder, 'plan.json'), JSON.stringify({ erase: { result: DONE } }));
    writeFileSync(join(folder, 'directory.mjs'), DIRECTORY);
    const directory = (known: object): void =>
      writeFileSync(join(folder, 'directory.json'), JSON.stringify(known));
    directory(
      Object.fromEntries([local, ...NAMES.map((name) => `token:${name}`)].map((name) => [name, true])),
    );
    const command = [process.execPath, join(folder, 'directory.mjs'), join(folder, 'directory.json')];
    const server = {
      fixture: {
        command: toolsServer(folder),
        config: {
          tools: { erase: { class: 'irreversible', repeat: 'free' } },
          policy: {
            version: 1,
            access: { command },
            rules: [{ name: 'Helpers look after it', read: ['token:helper'] }],
          },
        },
      },
    };
    const tokens = new Map<string, string>();
    const ledger = await composeLedger({ data });
    for (const [index, name] of NAMES.entries()) {
      const text = tokenText(new Uint8Array(32).fill(index + 1));
      tokens.set(name, text);
      const row = {
        name,
        hash: hashOfToken(text),
        access: 'write',
        createdAt: Date.now(),
        createdBy: 'mara',
      } as const;
      await ledger.tokens.create(row);
    }
    await ledger.close();

    const serving = await startServing(cleanUps, server, { data });
    const call = async (name: string, tool: string, args: object): Promise<string> => {
      const response = await fetch(serving.url(), {
        method: 'POST',
        headers: {
          authorization: `Bearer ${tokens.get(name)}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': tool,
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: {
            name: tool,
            arguments: args,
            _meta: {
              'io.modelcontextprotocol/protocolVersion': '2026-07-28',
              'io.modelcontextprotocol/clientInfo': { name: 'story', version: '1' },
              'io.modelcontextprotocol/clientCapabilities': {},
            },
          },
        }),
      });
      return response.text();
    };
    for (const name of NAMES) expect(await call(name, 'erase', { by: name })).toContain('NOT SENT YET');
    // A rule says who else may ask after it: to another principal it is as if it were not there.
    const [first] = await operationsIn(data);
    const after = { operation: first?.id };
    expect(await call('helper', 'counterfoil_operation_status', after)).toContain('NOT SENT YET');
    expect(await call('clerk', 'counterfoil_operation_status', after)).toMatch(
      /No operation .* is recorded here/,
    );
    serving.process.kill('SIGTERM');
    await serving.process.exited;
    const owner = ownerOf(data);
    const operationOf = async (name: string) => {
      const found = (await operationsIn(data)).find(({ requester }) => requester === `token:${name}`);
      if (found === undefined) throw new Error(`${name} has asked for nothing`);
      return found;
    };
    const approve = async (name: string) => {
      const { digest, id, review } = await operationOf(name);
      const again = review?.because === undefined ? [] : ['--review', review.id];
      return owner.approve(id, '--digest', digest, ...again);
    };
    for (const name of NAMES) expect((await approve(name)).code).toBe(0);

    // Nobody sends now. The planner's token is taken back; the clerk leaves, and the directory knows nothing of the guest.
    expect((await counterfoil(['token', 'revoke', 'planner', '--data', data])).code).toBe(0);
    directory({ [local]: true, 'token:planner': true, 'token:helper': true, 'token:clerk': false });
    // Whoever approved the helper's work may approve no more.
    const removed = await counterfoil(['principal', 'remove', local, '--data', data, '--json']);
    expect(JSON.parse(removed.stdout)).toMatchObject({ name: local, standing: 'removed' });

    const added = await counterfoil([
      'principal',
      'add',
      'token:clerk',
      '--kind',
      'agent',
      '--expires',
      '30d',
      '--data',
      data,
    ]);
    expect(added.stdout).toMatch(/^token:clerk {2}agent, has access, until /);
    const wrong = await counterfoil(['principal', 'add', 'clerk', '--data', data]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('"clerk" is no principal')]);

    await startServing(cleanUps, server, { data });
    const held = async (name: string) =>
      untilAsync(async () => {
        const operation = await operationOf(name);
        return operation.review?.because === undefined ? undefined : operation;
      }, `${name}'s work to be held`);
    const because = async (name: string) => (await held(name)).review?.because;
    const lost = (who: string, principal: string, how: string) => ({
      code: 'access_lost',
      who,
      principal,
      how,
    });
    expect(await because('planner')).toEqual(lost('requester', 'token:planner', 'removed'));
    expect(await because('helper')).toEqual(lost('approver', local, 'removed'));
    expect(await because('clerk')).toEqual(lost('requester', 'token:clerk', 'removed'));
    expect(await because('guest')).toEqual(lost('requester', 'token:guest', 'not_confirmed'));
    for (const name of NAMES)
      expect(await operationOf(name)).toMatchObject({
        stage: 'awaiting_approval',
        effect: 'not_sent',
        attempts: [],
      });
    const queue = await counterfoil(['queue', '--data', data]);
    expect(queue.stdout).toContain('Access was lost, for work to fixture');
    expect(queue.stdout).toContain('The access of token:planner, who asked for it, was removed.');
    expect(callsOf(folder, 'erase')).toEqual([]);
    const listed = await counterfoil(['principal', 'list', '--data', data]);
    expect(listed.stdout).toMatch(/^token:clerk {2}agent, removed by source at /m);

    // With the approver's access back and a new approval, the helper's work alone is sent.
    expect((await owner.run('principal', 'restore', local)).code).toBe(0);
    expect((await approve('helper')).code).toBe(0);
    await untilAsync(async () => callsOf(folder, 'erase').length > 0, 'the work of the helper');
    expect((await approve('planner')).code).toBe(0);
    await held('planner');
    expect(callsOf(folder, 'erase')).toHaveLength(1);
  });
});
