import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CleanUps, counterfoil } from '../gateway/processes.ts';

/** Each of them starts several processes; on a busy machine they take their time. */
const PATIENT = { timeout: 90_000 };

const cleanUps = new CleanUps();

interface Told {
  readonly ok: boolean;
  readonly withGateway: {
    readonly records: number;
    readonly answers: readonly string[];
    readonly effect: string;
  };
  readonly withoutGateway: { readonly records: number; readonly answers: readonly string[] };
  readonly folder: string | null;
}

function scratchFolders(): readonly string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('counterfoil-try-'));
}

describe('counterfoil try lost-reply', PATIENT, () => {
  test('the same fault makes two records without the gateway and one through it; the folder is gone afterwards', async () => {
    const ran = await counterfoil(['try', 'lost-reply', '--json']);
    expect(ran.stderr).toBe('');
    expect(ran.code).toBe(0);
    const told = JSON.parse(ran.stdout) as Told;
    expect(told).toMatchObject({
      ok: true,
      withoutGateway: { records: 2 },
      withGateway: { records: 1, effect: 'verified' },
    });
    expect(told.withoutGateway.answers[0]).toBe('no answer: the connection ended');
    expect(told.withGateway.answers[0]).toMatch(
      /^ALREADY_EXISTS — sent once at .*; its answer was lost, and the record was found/,
    );
    expect(told.withGateway.answers[1]).toMatch(/^ALREADY_EXISTS — this was done before/);
    expect(told.folder).toBeNull();
  });

  test('kept, its folder holds what was counted', async () => {
    const before = new Set(scratchFolders());
    const ran = await counterfoil(['try', 'lost-reply', '--keep']);
    expect(ran.code).toBe(0);
    const folder = /Kept: (\S+)/.exec(ran.stdout)?.[1] ?? '';
    cleanUps.add(() => rmSync(folder, { recursive: true, force: true }));
    try {
      expect(before.has(folder)).toBe(false);
      const notes = (side: string) =>
        readFileSync(join(folder, side, 'notes.jsonl'), 'utf8').split('\n').length - 1;
      expect([notes('without'), notes('with')]).toEqual([2, 1]);
      expect(existsSync(join(folder, 'with', 'data', 'ledger.sqlite'))).toBe(true);
    } finally {
      await cleanUps.run();
    }
  });
});
