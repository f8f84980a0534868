// Everything that is recorded, as lines of JSON in a file, and what of it is open.

import { open } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { labelOf, sentenceOf } from '../core/wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import { withLedger } from './data-directory.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT } from './output.ts';

export type LeftRecords =
  | { readonly kind: 'nothing' }
  /** The ledger cannot be opened: that keeps nobody from leaving. */
  | { readonly kind: 'unreadable'; readonly problem: string }
  | {
      readonly kind: 'exported';
      readonly file: string;
      readonly operations: number;
      readonly open: readonly OpenOperation[];
    };

interface OpenOperation {
  readonly operation: string;
  readonly label: string;
  readonly sentence: string;
}

const ALL = Number.MAX_SAFE_INTEGER;

/** Lists what is open, and writes every record to a file. */
export async function leaveRecords(data: string, asked: string | undefined): Promise<LeftRecords> {
  try {
    return await withLedger(data, async (ledger) => {
      const stamp = new Date().toISOString().replace(/[:.]/g, '');
      const file = asked === undefined ? join(data, `records-${stamp}.jsonl`) : resolve(asked);
      const operations = await exportRecords(ledger, file);
      const open = (await ledger.readings.open({ limit: ALL })).map((operation) => ({
        operation: operation.id,
        label: labelOf(operation),
        sentence: sentenceOf(operation),
      }));
      return { kind: 'exported', file, operations, open };
    });
  } catch (cause) {
    if (!(cause instanceof CommandFault) || cause.exitCode === EXIT.usage) throw cause;
    return cause.exitCode === EXIT.notFound
      ? { kind: 'nothing' }
      : { kind: 'unreadable', problem: cause.message };
  }
}

/** One line of JSON for each operation with its history, then for each confirmed class. */
async function exportRecords(ledger: Ledger, file: string): Promise<number> {
  const handle = await open(file, 'wx', 0o600).catch((cause: unknown) => {
    const { code, message } = cause as NodeJS.ErrnoException;
    const reason = code === 'EEXIST' ? 'it exists already' : message;
    throw new CommandFault(
      EXIT.usage,
      `Nothing was changed, because the records cannot be exported to ${printable(file)}: ${reason}. Name another file with --export.`,
    );
  });
  try {
    const operations = (await ledger.readings.recent(ALL)).toReversed();
    for (const operation of operations) {
      const reading = await ledger.readings.reading(operation);
      const { target, payload, reply, isIntact } = reading;
      const history = await ledger.readings.history(operation.id);
      const line = {
        operation,
        label: labelOf(operation),
        target: target ?? null,
        payload: payload.text,
        intact: isIntact,
        reply: reply ?? null,
        history,
      };
      await handle.appendFile(`${JSON.stringify(line)}\n`);
    }
    for (const rule of await ledger.rules()) await handle.appendFile(`${JSON.stringify({ rule })}\n`);
    await handle.sync();
    return operations.length;
  } finally {
    await handle.close();
  }
}
