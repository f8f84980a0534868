import { expect, test } from 'vitest';
import {
  allCells,
  differences,
  FAULTS,
  readExpected,
  runCells,
  sampleOf,
  unknownEntries,
} from '../../wire-faults/table.mjs';

/** Another one with WIRE_SEED; it is in the title of the test that it makes. */
const SEED = Number(process.env['WIRE_SEED'] ?? 20_261_130);
const SAMPLE = 24;

test('every fault × class has an expected state, and nothing else has one', () => {
  const expected = readExpected();
  const missing = allCells().filter(({ contract, fault }) => expected[fault]?.[contract] === undefined);
  expect(missing).toEqual([]);
  expect(unknownEntries(expected)).toEqual([]);
  expect(FAULTS.length).toBeGreaterThanOrEqual(36);
});

test(`a sample of the table is as it is listed (seed ${SEED})`, { timeout: 120_000 }, async () => {
  const ends = await runCells(sampleOf(allCells(), SAMPLE, SEED), { atOnce: 8 });
  expect(ends).toHaveLength(SAMPLE);
  expect(differences(ends)).toEqual([]);
});

test('a cut reply that is taken for proof makes the table red', { timeout: 60_000 }, async () => {
  const cells = [
    { fault: 'rst_after', contract: 'R0' },
    { fault: 'drop_reply', contract: 'R1' },
  ];
  const found = differences(await runCells(cells, { isBroken: true }));
  expect(found.map((problem) => problem.split(':')[0])).toEqual(['rst_after × R0', 'drop_reply × R1']);
});

test('a cell that is not listed, one that differs, and a fault that did not fire are each told', () => {
  const end = { fault: 'rst_after', contract: 'R0', seen: 'closed accepted', fired: 1, evidence: [] };
  expect(differences([end], {})).toEqual([
    'rst_after × R0: is not listed; it was seen as "closed accepted".',
  ]);
  expect(differences([end], { rst_after: { R0: 'parked unknown' } })).toHaveLength(1);
  expect(differences([{ ...end, fired: 0 }], { rst_after: { R0: 'closed accepted' } })).toEqual([
    'rst_after × R0: the fault did not fire.',
  ]);
  expect(unknownEntries({ planted: { R0: 'x' }, refused: { R9: 'x' } })).toHaveLength(2);
});

test('a sample is the same for the same seed, and another one for another', () => {
  const sample = sampleOf(allCells(), SAMPLE, 1);
  expect(sampleOf(allCells(), SAMPLE, 1)).toEqual(sample);
  expect(sampleOf(allCells(), SAMPLE, 2)).not.toEqual(sample);
  expect(new Set(sample).size).toBe(SAMPLE);
});
