import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { composeLedger } from '../../src/compose.ts';
import {
  CleanUps,
  callsOf,
  counterfoil,
  onTerminal,
  operationOf,
  operationsIn,
  PASSPHRASE,
  startGateway,
  toolsServer,
} from '../gateway/processes.ts';

const CONFIG = 'destination: fixture\ntools:\n  erase: {class: irreversible, repeat: unique}\n';

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

/** A ledger in which one irreversible write waits for a person. */
async function setup() {
  const folder = cleanUps.folder();
  const data = join(folder, 'data');
  writeFileSync(
    join(folder, 'tools.json'),
    JSON.stringify([{ name: 'erase', inputSchema: { type: 'object' } }]),
  );
  writeFileSync(join(folder, 'plan.json'), JSON.stringify({ erase: { result: { content: [] } } }));
  const gateway = cleanUps.started(startGateway({ data, server: toolsServer(folder), config: CONFIG }));
  await gateway.initialize();
  const id = operationOf(await gateway.call('erase', { thing: 7 }));
  const [operation] = await operationsIn(data);
  const approve = ['approve', id, '--digest', operation?.digest ?? '', '--data', data];
  return {
    data,
    id,
    approve,
    file: join(data, 'owner.passphrase'),
    set: () => onTerminal(['passphrase', 'set', '--data', data], [PASSPHRASE, PASSPHRASE]),
    calls: () => callsOf(folder, 'erase'),
    stage: async () => (await operationsIn(data))[0]?.stage,
  };
}

describe('what cannot be taken back', PATIENT, () => {
  test('is not approved by the account alone: the sentence says what to do, and nothing is sent', async () => {
    const { approve, calls, data, set, stage } = await setup();
    const ran = await counterfoil(approve);
    expect(ran.code).toBe(4);
    expect(ran.stdout).toBe('');
    expect(ran.stderr).toMatch(
      /^counterfoil: Nothing was decided: what cannot be taken back needs more than this account \(same_account\), which may be the agent's own\. Set a passphrase in a terminal \(counterfoil passphrase set\), then approve op_\w+ again\.\n$/,
    );
    expect(await stage()).toBe('awaiting_approval');
    expect(calls()).toHaveLength(0);
    const hint =
      'with your passphrase, and none is set yet. Set it first, in a terminal: counterfoil passphrase set';
    expect((await counterfoil(['queue', '--data', data])).stdout).toContain(hint);
    await set();
    expect((await counterfoil(['queue', '--data', data])).stdout).not.toContain(hint);
  });

  test('is not approved without a terminal, whatever is piped in or set in the environment', async () => {
    const { approve, set, stage } = await setup();
    expect((await set()).code).toBe(0);
    // A session without a terminal, as a process that an agent started has.
    const ran = await counterfoil(approve, {
      env: { COUNTERFOIL_PASSPHRASE: PASSPHRASE, PASSPHRASE },
      input: `${PASSPHRASE}\n`,
      detached: true,
    });
    expect(ran.code).toBe(4);
    expect(ran.stderr).toContain('is asked on the terminal of a person, and this command has none');
    const flagged = await counterfoil([...approve, '--passphrase', PASSPHRASE]);
    expect(flagged.code).toBe(2);
    expect(await stage()).toBe('awaiting_approval');
  });

  test('is approved by the passphrase, and the record names that strength', async () => {
    const { approve, data, set } = await setup();
    await set();
    const ran = await onTerminal(approve, [PASSPHRASE]);
    expect(ran.code).toBe(0);
    expect(ran.stdout).toContain("Strength: passphrase — the owner's passphrase was typed on a terminal.");
    expect((await operationsIn(data))[0]?.review?.decision?.strength).toBe('passphrase');
  });

  test('a wrong passphrase decides nothing; tries are counted over processes, and forgotten by a right one', async () => {
    const { approve, data, set, stage } = await setup();
    await set();
    const wrong = await onTerminal(approve, ['not the passphrase', 'nor this one either', 'nor is this']);
    expect(wrong.code).toBe(4);
    expect(wrong.stderr).toBe('counterfoil: Nothing was decided: the passphrase was not given.\n');
    expect(await stage()).toBe('awaiting_approval');
    const ownerState = async () => {
      const ledger = await composeLedger({ data });
      try {
        return await ledger.owner.state();
      } finally {
        await ledger.close();
      }
    };
    expect(await ownerState()).toMatchObject({ wrong: 3 });
    const right = await onTerminal(approve, [PASSPHRASE]);
    expect(right.code).toBe(0);
    expect(await ownerState()).toMatchObject({ wrong: 0 });
  });
});

describe('setting and changing it', PATIENT, () => {
  test('it is set once; the second time, it is changed by whoever knows it', async () => {
    const { approve, data, file, set } = await setup();
    const first = await set();
    expect(first.code).toBe(0);
    expect(first.stdout).toMatch(/^The passphrase is set\. /);
    expect(first.screen).not.toContain(PASSPHRASE);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const second = await set();
    expect(second.code).toBe(5);
    expect(second.stderr).toContain('To change it: counterfoil passphrase change');
    const changing = (...answers: string[]) => onTerminal(['passphrase', 'change', '--data', data], answers);
    expect((await changing('wrong', 'wrong', 'wrong')).code).toBe(4);
    const next = 'quite another sentence';
    const changed = await changing(PASSPHRASE, next, next);
    expect(changed.stderr).toBe('');
    expect(changed.code).toBe(0);
    expect((await onTerminal(approve, [PASSPHRASE, next])).code).toBe(0);
  });

  test('too short, or not twice alike: it is asked again, and in the end nothing is set', async () => {
    const { data, file } = await setup();
    const ran = await onTerminal(
      ['passphrase', 'set', '--data', data],
      ['short', 'correct horse battery', 'correct horse batter', 'short'],
    );
    expect(ran.code).toBe(2);
    expect(ran.screen).toContain('That cannot be a passphrase: it has 5 characters; at least 12 are wanted.');
    expect(ran.screen).toContain('The two are not the same.');
    expect(existsSync(file)).toBe(false);
  });

  test('another file in its place is not the owner’s: neither removing nor exchanging it opens the door', async () => {
    const { approve, data, file, set, stage } = await setup();
    await set();
    const owners = readFileSync(file);
    rmSync(file);
    for (const args of [approve, ['passphrase', 'change', '--data', data]]) {
      const ran = await onTerminal(args, [PASSPHRASE]);
      expect(ran.code).toBe(4);
      expect(ran.stderr).toContain('is not the file that was written when it was set');
    }
    expect((await set()).code).toBe(5);
    // The agent's own, made in another directory.
    const other = join(cleanUps.folder(), 'data');
    const own = 'chosen by the agent';
    await onTerminal(['passphrase', 'set', '--data', other], [own, own]);
    writeFileSync(file, readFileSync(join(other, 'owner.passphrase')));
    expect((await onTerminal(approve, [own])).code).toBe(4);
    expect(await stage()).toBe('awaiting_approval');
    // Nor does a file in a ledger that knows of no passphrase.
    const fresh = join(cleanUps.folder(), 'data');
    await onTerminal(['passphrase', 'set', '--data', fresh], ['short', 'short', 'short']);
    writeFileSync(join(fresh, 'owner.passphrase'), readFileSync(join(other, 'owner.passphrase')));
    const left = await onTerminal(['passphrase', 'set', '--data', fresh], [own, own]);
    expect(left.code).toBe(5);
    expect(left.stderr).toContain('Remove it, and set the passphrase again.');
    writeFileSync(file, owners);
    expect((await onTerminal(approve, [PASSPHRASE])).code).toBe(0);
  });
});
