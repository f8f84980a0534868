import { describe, expect, test } from 'vitest';
import { CHANGE, heldBy, IMPATIENT, OWN_ANSWER, RUN, STORY, setup, shown } from './harness.ts';

const DNS = { name: 'db.billing.example.com', type: 'A' };

describe.concurrent('the same write again', STORY, () => {
  test('[S16a] a transport retry is the same operation, and is given the answer of the first', async (context) => {
    const world = setup(context);
    world.plan({ on: 'raise_change_request', do: 'take', ms: 1_500 });
    const agent = await world.agent();
    const answer = await agent.call('raise_change_request', CHANGE, { ...RUN, call: 'call-1', ...IMPATIENT });
    const { operation } = await shown(world);

    expect(answer.tries).toBeGreaterThan(1);
    expect(answer.text.startsWith(OWN_ANSWER)).toBe(true);
    expect(operation.effect).toBe('verified');
    expect(await heldBy(world)).toHaveLength(1);
  });

  test('[S16c] a reasoning retry with another call id and other words is the same operation, and says what was not applied', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    const first = await agent.call('raise_change_request', CHANGE, { ...RUN, call: 'call-1' });
    const reworded = { ...CHANGE, description: 'Billing database: migration to its new host.' };
    const second = await agent.call('raise_change_request', reworded, { ...RUN, call: 'call-2' });
    const { operation } = await shown(world);

    expect(first.text.startsWith(OWN_ANSWER)).toBe(true);
    expect(second.text).toMatch(/^ALREADY_EXISTS — .*nothing was sent now/);
    expect(second.text).toContain('Different this time and NOT applied: description.');
    expect(second.isError).toBe(false);
    expect(second.operation).toBe(operation.id);
    // The original result follows unchanged.
    expect(second.texts[1]).toBe(first.text);
    const held = await heldBy(world);
    expect(held.map(({ description }) => description)).toEqual([CHANGE.description]);
  });

  test('[S16d] A→B→A goes through, each linked to the one before; A once more is the last one', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    const values = ['10.0.0.18', '10.0.0.17', '10.0.0.18', '10.0.0.18'];
    const answers = [];
    for (const [index, value] of values.entries()) {
      answers.push(
        await agent.call('update_dns_record', { ...DNS, value }, { ...RUN, call: `call-${index}` }),
      );
    }
    const { operation } = await shown(world);

    expect(answers.slice(0, 3).map(({ text }) => JSON.parse(text).version)).toEqual([1, 2, 3]);
    expect(answers[3]?.text).toMatch(/^ALREADY_EXISTS — /);
    expect(answers[3]?.operation).toBe(operation.id);
    expect(operation).toMatchObject({ effect: 'verified', previous: { relation: 'occurrence' } });
    const held = await heldBy(world);
    expect(held.map(({ value }) => value)).toEqual(values.slice(0, 3));
  });

  test('[S16e] five equal clicks are five, each linked to the one before', async (context) => {
    const world = setup(context);
    const agent = await world.agent();
    const operations = [];
    for (let count = 1; count <= 5; count += 1) {
      const answer = await agent.call('click', { button: 'Next' }, { ...RUN, call: `call-${count}` });
      expect(answer.text).toBe(`{"button":"Next","clicks":${count}}`);
      operations.push((await shown(world)).operation);
    }

    expect(new Set(operations.map(({ id }) => id)).size).toBe(5);
    expect(operations.map(({ previous }) => previous?.operation)).toEqual([
      undefined,
      ...operations.slice(0, 4).map(({ id }) => id),
    ]);
    expect(await heldBy(world)).toHaveLength(5);
  });

  test.for([
    ['each with a call id of its own', (index: number) => ({ call: `call-${index}` })],
    ['none with a call id', () => ({})],
  ] as const)(
    '[S21] 64 identical writes at once, %s: one send, and every answer is about the same operation',
    async ([, said], context) => {
      const world = setup(context);
      const agent = await world.agent();
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_unused, index) =>
          agent.call('raise_change_request', CHANGE, { ...RUN, ...said(index) }),
        ),
      );
      const { operation } = await shown(world);

      for (const answer of answers) {
        expect(answer.text).toMatch(/^(\{"id":"CHG-1042",|ALREADY_EXISTS — .*"CHG-1042")/);
        expect(answer.isError).toBe(false);
        if (answer.operation !== undefined) expect(answer.operation).toBe(operation.id);
      }
      expect(operation.effect).toBe('verified');
      expect(operation.attempts).toHaveLength(1);
      expect(operation.evidence.map(({ kind }) => kind)).toEqual(['acknowledgement', 'readback']);
      expect(await heldBy(world)).toHaveLength(1);
    },
  );
});
