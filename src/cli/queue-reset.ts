// `counterfoil queue reset`: a named person says that a destination answers again, and all that waits for it goes on.

import type { Ledger } from '../engine/ledger.ts';
import { withLedger } from './data-directory.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { actorName } from './queue-acts.ts';

export interface ResetOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly by?: string;
}

/** Decides nothing about any write, so that no passphrase is asked: what may not be sent is not sent after it either. */
export async function resetCircuit(destination: string, options: ResetOptions): Promise<number> {
  const by = actorName(options.by);
  return withLedger(options.data, async (ledger) => {
    const open = await ledger.circuits.list();
    const found = open.find((circuit) => circuit.destination === destination);
    const isReset = await ledger.circuits.close(destination, by);
    const after = await ledger.circuits.of(destination);
    if (after === undefined) {
      const others = open.map((circuit) => printable(circuit.destination));
      const known =
        others.length === 0 ? 'No circuit is open.' : `Those that are open: ${others.join(', ')}.`;
      throw new CommandFault(
        EXIT.notFound,
        `Nothing was changed: no circuit of ${printable(destination)} was ever open. ${known}`,
      );
    }
    if (options.json === true) {
      printJson({ destination, reset: isReset, since: after.since, by: after.by ?? null });
      return EXIT.done;
    }
    if (!isReset) {
      const who = after.by === undefined ? 'by an answer' : `by ${printable(after.by)}`;
      print(
        `Nothing was changed: the circuit of ${printable(destination)} is closed since ${instant(after.since)}, ${who}.`,
      );
      return EXIT.done;
    }
    const times = found === undefined ? '' : `; it had not answered ${found.failures} times in a row`;
    print(`The circuit of ${printable(destination)} is closed, by the word of ${printable(by)}${times}.`);
    print(await nextLine(ledger, destination));
    return EXIT.done;
  });
}

async function nextLine(ledger: Ledger, destination: string): Promise<string> {
  const name = printable(destination);
  return (await ledger.queue.isHeld(destination))
    ? `The running gateway to ${name} looks up and sends what waits now. If there is no answer again, the circuit opens again.`
    : `No gateway to ${name} runs now: what waits is looked up and sent when one does.`;
}
