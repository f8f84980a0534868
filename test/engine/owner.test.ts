import { afterEach, describe, expect, test } from 'vitest';
import { isOwnersFile } from '../../src/core/owner.ts';
import { type Fixture, setup } from './setup.ts';

let fixture: Fixture | undefined;
afterEach(async () => {
  await fixture?.close();
  fixture = undefined;
});

async function owned() {
  fixture = await setup();
  const { owner } = fixture.ledger;
  expect(await owner.state()).toBeUndefined();
  expect(await owner.set('f'.repeat(64), 'mara', undefined)).toBe(true);
  return { owner, moveClock: fixture.moveClock };
}

describe('tries of the passphrase', () => {
  test('are counted before they are judged, so that many at once gain nothing, and slowed from the fourth on', async () => {
    const { owner, moveClock } = await owned();
    const permits = await Promise.all(Array.from({ length: 8 }, () => owner.beginTry()));
    expect(permits.filter(({ may }) => may)).toHaveLength(3);
    const refused = await owner.beginTry();
    expect(refused.may).toBe(false);
    moveClock(1_000);
    expect(await owner.beginTry()).toEqual({ may: true });
    expect(await owner.beginTry()).toMatchObject({ may: false });
    moveClock(2_000);
    expect(await owner.beginTry()).toEqual({ may: true });
    await owner.right();
    expect(await owner.state()).toMatchObject({ wrong: 0 });
    expect(await owner.beginTry()).toEqual({ may: true });
  });

  test('a change that was broken off leaves both files the owner’s, until the next one is complete', async () => {
    const { owner } = await owned();
    const [first, next, third] = ['f', 'a', 'b'].map((digit) => digit.repeat(64)) as [string, string, string];
    expect(await owner.announce(next, 'c'.repeat(64))).toBe(false);
    expect(await owner.announce(next, first)).toBe(true);
    const state = await owner.state();
    if (state === undefined) throw new Error('none is set');
    expect([first, next, third].map((file) => isOwnersFile(state, file))).toEqual([true, true, false]);
    // The new file was written, and the process died: from there it is changed again.
    expect(await owner.announce(third, next)).toBe(true);
    expect(await owner.set(third, 'mara', next)).toBe(true);
    expect(await owner.state()).toMatchObject({ file: third });
    expect((await owner.state())?.next).toBeUndefined();
  });

  test('it is set once, and changed only from the one that is known', async () => {
    const { owner } = await owned();
    expect(await owner.set('a'.repeat(64), 'agent', undefined)).toBe(false);
    expect(await owner.set('a'.repeat(64), 'agent', 'b'.repeat(64))).toBe(false);
    expect(await owner.set('a'.repeat(64), 'mara', 'f'.repeat(64))).toBe(true);
    expect(await owner.state()).toMatchObject({ file: 'a'.repeat(64), setBy: 'mara', wrong: 0 });
  });
});
