// The commands under `counterfoil queue`, with their options.

import type { Command } from 'commander';

type Parse = (value: string, earlier: string | undefined) => string;

export interface CommonOptions {
  readonly data: readonly [flags: string, description: string, parse: Parse];
  readonly json: readonly [flags: string, description: string];
  readonly once: Parse;
  /** Told the code that the command ends with. */
  readonly ends: (code: number) => void;
}

export function queueCommands(root: Command, common: CommonOptions): void {
  const { ends, once } = common;
  const queue = root
    .command('queue')
    .description('what is open, grouped by what stands in its way, and what a person does about it');
  const command = (name: string, description: string): Command => {
    return queue
      .command(name)
      .description(description)
      .option(...common.data)
      .option(...common.json);
  };
  const acting = (name: string, description: string): Command =>
    command(name, description)
      .argument('[target...]', 'operations (op_…, or op_…@VERSION as it was shown), or one cause (cause_…)')
      .option(
        '--digest <digest>',
        'of the cause’s list that was looked at, or at least its first 12 digits',
        once,
      )
      .option('--list <file>', 'in place of targets: a list that was kept (queue show CAUSE --json)', once)
      .option('--by <name>', 'who acts (this account, when absent)', once)
      .option('--dry-run', 'say what would be done, and do nothing');

  queue
    .command('list', { isDefault: true })
    .description('every cause, with what it has caught')
    // What is no command of queue comes here, and is told so.
    .allowExcessArguments()
    .option(...common.data)
    .option(...common.json)
    .action(async (options, { args }: Command) =>
      ends(await (await import('./queue.ts')).queue({ ...options, named: args })),
    );
  command('show', 'one cause: its operations at their versions, and the digest of the list')
    .argument('<cause>', 'the cause (cause_…)')
    .action(async (cause: string, options) =>
      ends(await (await import('./queue.ts')).showCause(cause, options)),
    );
  acting('resolve', 'state what you found at the destination; the effect stays what evidence says')
    .option('--happened', 'it happened')
    .option('--not-happened', 'it did not happen')
    .option('--other-change', 'something else changed it')
    .requiredOption('--looked-at <where>', 'where you looked: an address, a record and its version', once)
    .action(async (named: string[], options) =>
      ends(await (await import('./queue-acts.ts')).resolve(named, options)),
    );
  acting(
    'send-again',
    'after “it did not happen”: open a review for sending the same operation again',
  ).action(async (named: string[], options) =>
    ends(await (await import('./queue-acts.ts')).sendAgain(named, options)),
  );
  acting('close-unknown', 'give up, by name: closed, and what is not known stays so').action(
    async (named: string[], options) =>
      ends(await (await import('./queue-acts.ts')).closeUnknown(named, options)),
  );
  acting(
    'renew',
    'approve anew, as one decision, what was never sent and whose approvals have expired',
  ).action(async (named: string[], options) =>
    ends(await (await import('./queue-acts.ts')).renew(named, options)),
  );
  command('claim', 'say that you work on a cause; until then others leave it alone')
    .argument('<cause>', 'the cause (cause_…)')
    .option('--for <time>', 'such as 15m, 2h or PT1H; 15 minutes when absent', once)
    .option('--by <name>', 'who claims (this account, when absent)', once)
    .action(async (cause: string, options) =>
      ends(await (await import('./queue-claim.ts')).claimCause(cause, options)),
    );
  command('hand-over', 'give a cause that you have claimed to somebody else')
    .argument('<cause>', 'the cause (cause_…)')
    .requiredOption('--to <name>', 'who has it from now on', once)
    .option('--for <time>', 'such as 15m, 2h or PT1H; 15 minutes when absent', once)
    .option('--by <name>', 'who hands it over (this account, when absent)', once)
    .action(async (cause: string, options) =>
      ends(await (await import('./queue-claim.ts')).handOver(cause, options)),
    );
  command('release', 'let go of a cause that you have claimed')
    .argument('<cause>', 'the cause (cause_…)')
    .option('--by <name>', 'who lets go (this account, when absent)', once)
    .action(async (cause: string, options) =>
      ends(await (await import('./queue-claim.ts')).releaseCause(cause, options)),
    );
  acting('look-up', 'have it looked up now by the gateway that holds the destination').action(
    async (named: string[], options) => ends(await (await import('./queue-acts.ts')).lookUp(named, options)),
  );
  command('reset', 'say that a destination answers again: its circuit is closed, and all that waits goes on')
    .argument('<destination>', 'as doctor and queue name it')
    .option('--by <name>', 'who says so (this account, when absent)', once)
    .action(async (destination: string, options) =>
      ends(await (await import('./queue-reset.ts')).resetCircuit(destination, options)),
    );
  command('export', 'the queue, or one cause, as CSV: to be worked on, and brought back with import')
    .argument('[cause]', 'the cause (cause_…)')
    .option('--out <file>', 'where it is written (standard output, when absent)', once)
    .action(async (cause: string | undefined, options) =>
      ends(await (await import('./queue-csv.ts')).exportQueue(cause, options)),
    );
  command('import', 'do what the column act of an exported file says; what has changed since is left out')
    .argument('<file>', 'the CSV file')
    .option('--by <name>', 'who acts (this account, when absent)', once)
    .option('--dry-run', 'say what would be done, and do nothing')
    .action(async (file: string, options) =>
      ends(await (await import('./queue-csv.ts')).importQueue(file, options)),
    );
}
