// A second one that a person asks for where no gateway runs: made from the record of the first alone.

import { describe, expect, test } from 'vitest';
import type { Ledger } from '../../src/engine/ledger.ts';
import { alterPayloads } from './places.ts';
import { factsOf, setup } from './setup.ts';

const FACTS = {
  file: factsOf('file', {
    target: { type: 'folder', id: ['{folder}'] },
    stamp: { argument: 'reference' },
  }),
};

/** As a command opens it: it knows no tool and sends nothing. */
const asCommand = { destinations: [], factsFor: () => undefined };

async function closed(ledger: Ledger, id: string) {
  for (;;) {
    const operation = await ledger.status(id, 1_000);
    if (operation?.stage === 'closed') return operation;
  }
}

describe('made from a record', () => {
  test('it has the arguments and the target of the first, and our reference anew; a gateway sends it once approved', async () => {
    const fixture = await setup({ facts: FACTS, onDisk: true });
    try {
      const args = { folder: 'f-1', title: 'Plan', copies: 2 };
      await fixture.write('file', args);
      const [first] = await fixture.ledger.readings.recent(1);
      const command = await fixture.open(asCommand);
      const ask = { operation: first?.id ?? '', reason: 'Two.' };
      expect(await command.again({ ...ask, requester: 'somebody else' })).toBe('not_found');
      expect(await command.again({ ...ask, requester: 'agent' })).toBe('tool_unknown');
      const asked = await command.again({ ...ask, person: 'Mara' });
      if (typeof asked === 'string' || !asked.opened) throw new Error('It was not opened.');
      const { digest, id } = asked.operation;
      expect(asked.operation).toMatchObject({
        askedBy: 'Mara',
        requester: 'agent',
        crossRunHash: first?.crossRunHash,
        argumentsDigest: first?.argumentsDigest,
        target: { locks: first?.target?.locks },
      });
      const decision = {
        operation: id,
        digest,
        kind: 'approved',
        by: 'Mara',
        strength: 'passphrase',
      } as const;
      expect(await command.decideReview(decision)).toMatchObject({ decided: true });
      await closed(fixture.ledger, id);
      expect(fixture.records).toEqual([
        { ...args, reference: first?.id },
        { ...args, reference: id },
      ]);
    } finally {
      await fixture.close();
    }
  });

  test('it is not made of a payload that is not what was sent', async () => {
    const fixture = await setup({ facts: FACTS, onDisk: true });
    try {
      await fixture.write('file', { folder: 'f-1' });
      const [first] = await fixture.ledger.readings.recent(1);
      await alterPayloads(fixture.data, '{"folder":"f-2"}');
      const command = await fixture.open(asCommand);
      const ask = { operation: first?.id ?? '', reason: 'Two.', person: 'Mara' };
      expect(await command.again(ask)).toBe('altered');
      expect(await command.readings.recent(9)).toHaveLength(1);
    } finally {
      await fixture.close();
    }
  });
});
