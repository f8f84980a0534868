// Who is told beside the signed webhook: people in chats and by mail, many news in one message, and a requester of what has
// settled. Receivers are local, and read what came by code of their own.

import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { fixtureWorld } from './fixture-world.ts';
import { sdkClient, startServing } from './http/serving.ts';
import { CleanUps, operationOf, toolsServer, until } from './processes.ts';

const KEY = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const CONFIG = 'destination: fixture\ntools:\n  note: {class: ordinary, repeat: unique}\n';

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 60_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

/** What was posted to it; it answers with these statuses first, then with 200. */
async function receiver(statuses: number[] = []) {
  const received: { readonly signature: unknown; readonly text: string }[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      const status = statuses.shift() ?? 200;
      if (status === 200) received.push({ signature: request.headers['webhook-signature'], text });
      response.writeHead(status).end('ok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.add(() => {
    server.closeAllConnections();
    server.close();
  });
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in` };
}

/** A mail server that takes everything (RFC 5321, as much of it as a client needs). */
async function mailServer() {
  const mails: { readonly to: readonly string[]; readonly text: string }[] = [];
  const talk = (socket: Socket): void => {
    let rest = '';
    let to: string[] = [];
    let data: string | undefined;
    socket.on('error', () => {});
    socket.setEncoding('utf8').write('220 local ESMTP\r\n');
    socket.on('data', (chunk: string) => {
      rest += chunk;
      for (let end = rest.indexOf('\r\n'); end >= 0; end = rest.indexOf('\r\n')) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + 2);
        if (data !== undefined && line !== '.') data += `${line}\n`;
        else if (data !== undefined) {
          mails.push({ to, text: data });
          [to, data] = [[], undefined];
          socket.write('250 taken\r\n');
        } else if (/^DATA/i.test(line)) {
          data = '';
          socket.write('354 go on\r\n');
        } else if (/^QUIT/i.test(line)) socket.end('221 bye\r\n');
        else {
          const [, address] = /^RCPT TO:<(.*)>/i.exec(line) ?? [];
          if (address !== undefined) to.push(address);
          socket.write('250 local\r\n');
        }
      }
    });
  };
  const server = createTcp(talk);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.add(() => {
    server.close();
  });
  return { mails, url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test(
  'a single gateway: news goes to Slack and by mail, gathered, without content and without anything to press; a requester is told what has settled',
  PATIENT,
  async () => {
    const world = fixtureWorld(cleanUps, [{ name: 'note' }], { note: { does: 'die_done' } });
    const slack = await receiver([500]);
    const mail = await mailServer();
    const callback = await receiver();
    mkdirSync(world.data, { recursive: true });
    writeFileSync(join(world.data, 'slack.url'), `${slack.url}\n`);
    writeFileSync(
      join(world.data, 'notify.yaml'),
      stringify({
        notify: [
          { kind: 'slack', url: { file: 'slack.url' }, every: 'PT1S' },
          {
            kind: 'email',
            smtp: { env: 'SMTP_ADDRESS' },
            from: 'counterfoil@example.com',
            to: ['ops@example.com', 'mara@example.com'],
            every: 'PT1S',
          },
        ],
        callbacks: [
          { requester: `local:${userInfo().username}`, url: callback.url, secret: { env: 'HOOK' } },
        ],
      }),
    );
    const gateway = await world.start(CONFIG, { HOOK: KEY, SMTP_ADDRESS: mail.url });
    const lost = operationOf(await gateway.call('note', { page: 'a <secret> page' }));
    await until(() => slack.received.length > 0 && mail.mails.length > 0, 'both to be told');

    const [told] = slack.received;
    expect(Object.keys(JSON.parse(told?.text ?? '{}') as object)).toEqual(['text']);
    expect((JSON.parse(told?.text ?? '{}') as { readonly text: string }).text).toBe(
      'Counterfoil: news of one cause in the queue\nNew: No answer from fixture — 1 needs a person. What was never sent goes when it answers again; what was sent is looked up where that is possible.\nTo look and to decide: counterfoil queue, where the ledger is.',
    );
    const [first] = mail.mails;
    expect(first?.to).toEqual(['ops@example.com', 'mara@example.com']);
    expect(first?.text).toContain('Subject: Counterfoil: news of one cause in the queue');
    expect(first?.text).toContain('From: counterfoil@example.com');
    expect(first?.text.replaceAll(/=?\n/g, '')).toContain('No answer from fixture');
    for (const { text } of [...slack.received, ...mail.mails]) expect(text).not.toMatch(/secret|op_/);

    // What a person has closed as unknown has not settled: the requester hears of the other one alone.
    await world.command('queue', 'close-unknown', lost);
    world.plan({ note: { result: { content: [{ type: 'text', text: 'done' }] } } });
    await gateway.call('note', { page: 'another' });
    const done = (await world.newest()).id;
    await until(() => callback.received.length > 0, 'the requester to be told');
    expect(callback.received.map(({ signature, text }) => [typeof signature, JSON.parse(text)])).toEqual([
      [
        'string',
        {
          type: 'operation.settled',
          timestamp: expect.any(String),
          data: expect.objectContaining({
            operation: done,
            effect: 'accepted',
            destination: 'fixture',
            why: 'answered',
          }),
        },
      ],
    ]);
    await until(
      () => slack.received.some(({ text }) => text.includes('Over: No answer from fixture.')),
      'the end',
    );
  },
);

test(
  'counterfoil serve: Teams by the file that it names; what cannot be used starts nothing, and repeats no secret',
  PATIENT,
  async () => {
    const world = fixtureWorld(cleanUps, [{ name: 'note' }], { note: { does: 'die_done' } });
    const teams = await receiver();
    const file = join(world.folder, 'told.yaml');
    writeFileSync(file, stringify({ notify: [{ kind: 'teams', url: { env: 'TEAMS' }, every: 'PT1S' }] }));
    const served = await startServing(
      cleanUps,
      { fixture: { command: toolsServer(world.folder), config: { tools: { note: { class: 'ordinary' } } } } },
      { data: world.data, env: { TEAMS: teams.url }, more: { notify: file } },
    );
    const { client } = await sdkClient(cleanUps, served.url());
    await client.callTool({ name: 'note', arguments: { page: 'a secret page' } });
    await until(() => teams.received.length > 0, 'Teams to be told');
    const card = JSON.parse(teams.received[0]?.text ?? '{}') as {
      readonly attachments: readonly {
        readonly contentType: string;
        readonly content: { readonly body: readonly { readonly type: string; readonly text: string }[] };
      }[];
    };
    const [attachment] = card.attachments;
    expect(attachment?.contentType).toBe('application/vnd.microsoft.card.adaptive');
    expect(attachment?.content.body.map(({ type }) => type)).toEqual(['TextBlock', 'TextBlock', 'TextBlock']);
    expect(attachment?.content.body[1]?.text).toContain('New: No answer from fixture — 1 needs a person.');
    expect(JSON.stringify(card)).not.toMatch(/secret|Action/);

    const bad: readonly (readonly [object, RegExp])[] = [
      [
        { notify: [{ kind: 'slack', url: 'https://hooks.example/T0/secret' }] },
        /notify\[0\]\.url says where it is kept/,
      ],
      [
        { notify: [{ kind: 'email', smtp: { env: 'X' }, to: ['a@b'] }] },
        /notify\[0\] is email and says no from\./,
      ],
      [
        { notify: [{ kind: 'slack', url: { env: 'NOT_SET' } }] },
        /The variable NOT_SET, which holds the address of slack, is not set\. Nothing was started\./,
      ],
      [{ notfiy: [] }, /notfiy/],
    ];
    const config = join(world.folder, 'serve.yaml');
    writeFileSync(config, stringify({ servers: { fixture: { command: 'node' } }, notify: 'told.yaml' }));
    for (const [content, sentence] of bad) {
      writeFileSync(file, stringify(content));
      const ran = await world.command('serve', '--config', config, '--port', '0');
      expect([ran.code, ran.stderr]).toEqual([2, expect.stringMatching(sentence)]);
      expect(ran.stderr).not.toContain('secret');
    }
  },
);
