import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { readCsv } from '../../src/core/csv.ts';
import { fixtureWorld } from '../gateway/fixture-world.ts';
import { CleanUps, counterfoil, operationOf, untilAsync } from '../gateway/processes.ts';

const CONFIG = `destination: fixture
tools:
  note: {class: ordinary, repeat: unique, target: {type: page, id: '{page}'}}
`;
const CAUSE = 'cause_no_answer@fixture';
/** The server takes the note, and ends without an answer. */
const LOSES = { note: { does: 'die_done' } };

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

/** Notes whose answers were lost, on these pages; nobody can look them up. */
async function withLost(...pages: readonly string[]) {
  const world = fixtureWorld(cleanUps, [{ name: 'note' }], LOSES);
  const gateway = await world.start(CONFIG);
  const ids: string[] = [];
  for (const page of pages) ids.push(operationOf(await gateway.call('note', { page })));
  for (const id of ids) await world.operation(id, 'parked');
  return { ...world, gateway, ids };
}

interface ActJson {
  readonly done: readonly { readonly operation: string; readonly effect: string }[];
  readonly left_out: readonly {
    readonly operation: string;
    readonly why: string;
    readonly sentence: string;
  }[];
}

const cellsOf = (text: string): readonly (readonly string[])[] => {
  const reading = readCsv(text);
  if (!reading.ok) throw new Error(reading.problem);
  return reading.rows.map(({ cells }) => cells);
};

/** The exported table with an act, and where somebody looked, in each of its rows. */
function filledIn(text: string, acts: readonly (readonly [act: string, lookedAt: string])[]): string {
  const [header = '', ...rows] = text.trimEnd().split('\r\n');
  return [header, ...rows.map((row, index) => row.replace(/,,$/, `,${acts[index]?.join(',') ?? ','}`))].join(
    '\r\n',
  );
}

describe('a cause and its list', PATIENT, () => {
  test('an act on it wants the digest that was looked at; when the list has changed nothing is done', async () => {
    const { command, gateway, operation } = await withLost('p-1', 'p-2');
    const shown = await command('queue', 'show', CAUSE);
    const [, digest = ''] = /\nlist {7}([0-9a-f]{64})\n/.exec(shown.stdout) ?? [];
    expect(shown.stdout).toMatch(
      /^No answer from fixture \(2\) {2}cause_no_answer@fixture\n {2}2 need a person\./,
    );
    expect(shown.stdout).toMatch(/\n {2}op_\w+@\d+ {2}note on fixture, page "?p-1/);
    const without = await command('queue', 'close-unknown', CAUSE);
    expect(without.code).toBe(2);
    expect(without.stderr).toContain('wants the digest of the list that was looked at');
    const another = operationOf(await gateway.call('note', { page: 'p-3' }));
    await operation(another, 'parked');
    const late = await command('queue', 'close-unknown', CAUSE, '--digest', digest.slice(0, 12));
    expect(late.code).toBe(5);
    expect(late.stderr).toContain(
      'Nothing was done: the list of cause_no_answer@fixture is not the one with that digest',
    );
    const kept = await command('queue', 'show', CAUSE, '--json');
    const { list } = JSON.parse(kept.stdout) as { readonly list: { readonly digest: string } };
    const tried = await command(
      'queue',
      'close-unknown',
      CAUSE,
      '--digest',
      list.digest,
      '--dry-run',
      '--json',
    );
    expect((JSON.parse(tried.stdout) as ActJson).done).toHaveLength(3);
    const closed = await command(
      'queue',
      'close-unknown',
      CAUSE,
      '--digest',
      list.digest,
      '--by',
      'Mara',
      '--json',
    );
    const { done } = JSON.parse(closed.stdout) as ActJson;
    expect(done.map(({ effect }) => effect)).toEqual(['unknown', 'unknown', 'unknown']);
    expect((await command('queue')).stdout).toBe('Nothing waits for a person, and nothing is open.\n');
  });

  test('of a list that was kept, what has changed since is left out and named', async () => {
    const { command, folder, ids } = await withLost('p-1', 'p-2');
    const file = join(folder, 'list.json');
    writeFileSync(file, (await command('queue', 'show', CAUSE, '--json')).stdout);
    const [first = '', second] = ids;
    await command('queue', 'resolve', first, '--not-happened', '--looked-at', 'page p-1', '--by', 'Luis');
    const closed = await command('queue', 'close-unknown', '--list', file, '--by', 'Mara');
    expect(closed.code).toBe(5);
    expect(closed.stdout).toContain(`${first}  left out: it has changed since it was looked at.`);
    expect(closed.stdout).toMatch(
      new RegExp(`${second} {2}Outcome unknown\\. .*Closed by Mara without a finding\\.`),
    );
  });

  test('who works on it is seen by others, who are kept from it until it is let go', async () => {
    const { command, ids } = await withLost('p-1');
    const [id = ''] = ids;
    expect((await command('queue', 'claim', CAUSE, '--by', 'Mara', '--for', '2h')).stdout).toMatch(
      /Claimed by Mara until /,
    );
    expect((await command('queue')).stdout).toMatch(/\n {2}Claimed by Mara until .* UTC\.\n/);
    const taken = await command('queue', 'claim', CAUSE, '--by', 'Luis');
    expect([taken.code, taken.stderr]).toEqual([
      5,
      expect.stringMatching(/It is not yours: Claimed by Mara until /),
    ]);
    const kept = await command('queue', 'close-unknown', id, '--by', 'Luis');
    expect([kept.code, kept.stdout]).toEqual([
      5,
      expect.stringMatching(/its cause is claimed by Mara until /),
    ]);
    expect((await command('queue', 'hand-over', CAUSE, '--by', 'Mara', '--to', 'Luis')).stdout).toMatch(
      /Claimed by Luis until .*, handed over by Mara\./,
    );
    expect((await command('queue', 'release', CAUSE, '--by', 'Mara')).code).toBe(5);
    expect((await command('queue', 'close-unknown', id, '--by', 'Luis')).code).toBe(0);
  });
});

describe('where a passphrase is set', PATIENT, () => {
  test('a statement and a closing ask for it on a terminal, and whoever has none is refused', async () => {
    const { data, ids, operations, owner } = await withLost('p-1', 'p-2');
    const [first = '', second = ''] = ids;
    const stated = await owner.run(
      'queue',
      'resolve',
      first,
      '--happened',
      '--looked-at',
      'the page',
      '--by',
      'Mara',
    );
    expect(stated.screen).toMatch(
      /To resolve: 1 operation\s+op_\w+ {2}note on fixture\.[^]*Passphrase of the owner: /,
    );
    expect(stated.stdout).toContain("Strength: passphrase — the owner's passphrase was typed on a terminal.");
    for (const act of [
      ['resolve', second, '--happened', '--looked-at', 'nowhere'],
      ['close-unknown', second],
    ]) {
      const refused = await counterfoil(['queue', ...act, '--data', data], { detached: true });
      expect(refused.code).toBe(4);
      expect(refused.stderr).toMatch(
        /needs the owner's passphrase, which is asked on the terminal of a person/,
      );
    }
    expect((await operations()).map(({ resolution, stage }) => [stage, resolution?.strength])).toEqual([
      ['closed', 'passphrase'],
      ['parked', undefined],
    ]);
    // To ask for a look-up decides nothing.
    const look = await counterfoil(['queue', 'look-up', second, '--data', data], { detached: true });
    expect(look.code).toBe(0);
  });
});

describe('a look-up that a person orders', PATIENT, () => {
  test('is made by the gateway that runs; where none does, and nothing is known to look by, it is left out and can be stated', async () => {
    const { command, gateway, ids, operation } = await withLost('p-1');
    const [id = ''] = ids;
    const running = await command('queue', 'look-up', id, '--by', 'Mara');
    expect(running.stdout).toContain('The running gateway to fixture looks now.');
    await operation(id, 'parked');
    const { stdout: seen } = await command('show', id);
    expect(seen).toMatch(/Mara asked for a look-up now\n.*parked: no lookup/);
    await gateway.end();
    const waiting = await command('queue', 'look-up', id, '--by', 'Mara');
    expect([waiting.code, waiting.stdout]).toEqual([
      5,
      `${id}  left out: nothing is known by which it could be looked up, and no gateway to it runs that may know better.\n`,
    ]);
    expect((await command('queue', 'show', CAUSE)).stdout).not.toContain('queue look-up');
    const stated = await command('queue', 'resolve', id, '--happened', '--looked-at', 'x', '--by', 'Mara');
    expect(stated.code).toBe(0);
    const again = await command('queue', 'close-unknown', id, '--by', 'Mara');
    expect(again.stdout).toMatch(
      /left out: that cannot be done with it as it is now: Stated by Mara at [\d:]+ UTC\.\n$/,
    );
  });
});

describe('the queue as a table', PATIENT, () => {
  test('goes out and comes back: tried first, then done; a row that has changed since is left out and named', async () => {
    const { calls, command, folder, ids, operations } = await withLost('=HYPERLINK("x")', 'p-2', 'p-3');
    const file = join(folder, 'queue.csv');
    const exported = await command('queue', 'export', CAUSE, '--out', file);
    expect(exported.stderr).toBe('counterfoil: 3 operations were exported.\n');
    expect((await command('queue', 'export', '--out', file)).code).toBe(2);
    const text = readFileSync(file, 'utf8');
    const [header, ...rows] = cellsOf(text);
    expect(header?.slice(0, 3)).toEqual(['operation', 'version', 'cause']);
    expect(rows.map(([id]) => id)).toEqual(ids);
    expect(rows[0]?.[5]).toContain('=HYPERLINK("x")');
    writeFileSync(
      file,
      filledIn(text, [
        ['happened', 'the page'],
        ['not_happened', 'the page'],
        ['close_unknown', ''],
      ]),
    );
    const [first = '', second, third] = ids;
    await command('queue', 'close-unknown', first, '--by', 'Luis');
    const before = await operations();
    const tried = await command('queue', 'import', file, '--dry-run', '--by', 'Mara', '--json');
    expect(await operations()).toEqual(before);
    const done = await command('queue', 'import', file, '--by', 'Mara', '--json');
    for (const ran of [tried, done]) {
      const report = JSON.parse(ran.stdout) as ActJson;
      expect(ran.code).toBe(5);
      expect(report.done.map(({ operation }) => operation)).toEqual([second, third]);
      expect(report.left_out).toMatchObject([{ operation: first, why: 'changed' }]);
    }
    const after = await operations();
    expect(after.map(({ resolution, stage, why }) => [stage, resolution?.resolution ?? why?.code])).toEqual([
      ['closed', 'given_up'],
      ['parked', 'stated_not_happened'],
      ['closed', 'given_up'],
    ]);
    expect(calls('note')).toHaveLength(3);
  });

  test.each([
    ['operation,version,act\nop_1,1,happened', /line 1: the columns looked_at are missing/],
    [
      'operation;version;act;looked_at\nop_1;1;happened;x',
      /line 1: the columns .* are missing \(cells are separated by commas\)/,
    ],
    ['operation,version,act,looked_at,colour\n', /line 1: there is no column colour/],
    ['operation,version,act,looked_at\nop_1,1,forget,x', /line 2: "forget" is no act; there are happened, /],
    ['operation,version,act,looked_at\nop_1,1,happened,', /line 2: happened wants to know where you looked/],
    [
      `operation,version,act,looked_at\nop_1,1,happened,${'x'.repeat(2_049)}`,
      /line 2: looked_at has more than 2048 characters/,
    ],
    ['operation,version,act,looked_at\nop_1,one,happened,x', /line 2: "one" is no version/],
    ['operation,version,act,looked_at\nop_1,1,,\nop_1,2,,', /line 3: op_1 is there twice/],
    [
      'operation,version,act,looked_at\n"op_1,1',
      /line 2: it begins a cell with a quotation mark that nothing closes/,
    ],
  ])('%j is refused with its line, and nothing of it is done', async (text, sentence) => {
    const { command, folder } = fixtureWorld(cleanUps, []);
    const file = join(folder, 'bad.csv');
    writeFileSync(file, text);
    const ran = await command('queue', 'import', file);
    expect(ran.code).toBe(2);
    expect(ran.stderr).toMatch(sentence);
    expect(ran.stderr).toContain('Nothing of the file was done.');
    expect(existsSync(join(folder, 'data', 'ledger.sqlite'))).toBe(false);
  });
});

describe('bad input', PATIENT, () => {
  test.each([
    [['resolve', 'op_1', '--looked-at', 'x'], 2, /one of --happened, --not-happened and --other-change/],
    [['resolve', 'op_1', '--happened', '--not-happened', '--looked-at', 'x'], 2, /Say what you found/],
    [['resolve', 'op_1', '--happened'], 2, /required option '--looked-at <where>' not specified/],
    [['close-unknown'], 2, /Name operations \(op_…\), a cause \(cause_…\), or a list/],
    [['close-unknown', 'CHG-1042'], 2, /"CHG-1042" is neither an operation/],
    [['close-unknown', CAUSE, 'op_1', '--digest', '0123456789ab'], 2, /stands for its list/],
    [
      ['close-unknown', CAUSE, '--digest', '0123456789ab'],
      3,
      /Nothing open belongs to cause_no_answer@fixture now/,
    ],
    [['close-unknown', 'op_1', '--list', 'x'], 2, /Both op_1 and --list were given/],
    [['close-unknown', '--list', 'not-there.json'], 2, /The list not-there\.json cannot be read/],
    [['close-unknown', 'op_NONE'], 5, /op_NONE {2}left out: it is not recorded here/],
    [['frob'], 2, /"frob" is no command of queue\. Those that there are: counterfoil queue --help/],
    [[CAUSE], 2, /Did you mean counterfoil queue show cause_no_answer@fixture\?/],
    [['show', 'cause_none@x'], 3, /Nothing open belongs to/],
    [['claim', 'op_1'], 2, /"op_1" is no cause/],
    [['claim', CAUSE, '--for', 'soon'], 2, /--for soon is no time/],
    [['claim', CAUSE], 3, /Nothing open belongs to/],
    [['release', CAUSE], 5, /Nobody has claimed/],
    [['reset', 'fixtures'], 3, /no circuit of fixtures was ever open\. No circuit is open\./],
    [['hand-over', CAUSE], 2, /required option '--to <name>' not specified/],
  ] as const)('counterfoil queue %j', async (args, code, sentence) => {
    const { command, start } = fixtureWorld(cleanUps, []);
    const gateway = await start(CONFIG);
    await gateway.end();
    await untilAsync(async () => (await command('queue')).code === 0, 'the ledger');
    const ran = await command('queue', ...args);
    expect(ran.stderr + ran.stdout).toMatch(sentence);
    expect(ran.code).toBe(code);
  });
});
