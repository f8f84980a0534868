import { expect, test } from 'vitest';
import { Slots } from '../../src/destination/http/slots.ts';

test.each([0, 1, 2, 3, 4, 5])(
  'a place that is given back goes to one, whoever asks for it %i turns later',
  async (turns) => {
    const slots = new Slots(1);
    const first = await slots.take(1_000);
    const inLine = slots.take(50);
    first?.();
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    const taken = (await Promise.all([slots.take(50), inLine])).filter((free) => free !== undefined);
    expect(taken).toHaveLength(1);
    taken[0]?.();
    expect(slots.isFree).toBe(true);
    await slots.take(0);
    expect(slots.isFree).toBe(false);
  },
);
