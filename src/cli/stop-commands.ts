// `counterfoil stop`, `stops`, `lift` and `cancel`, with their options.

import type { Command } from 'commander';
import type { CommonOptions } from './queue-commands.ts';

export function stopCommands(root: Command, common: CommonOptions): void {
  const { ends, once } = common;
  const command = (name: string, description: string): Command =>
    root
      .command(name)
      .description(description)
      .option(...common.data)
      .option(...common.json);
  command('stop', 'send no more at a scope, in every process; what is out goes on to be known')
    .option('--all', 'everything')
    .option('--destination <name>', 'one destination', once)
    .option('--tool <destination/tool>', 'one tool of it', once)
    .option('--run <id>', 'one run', once)
    .option('--requester <name>', 'what one requester asks for', once)
    .requiredOption('--reason <text>', 'why; whoever calls is told', once)
    .option('--by <name>', 'who stops it (this account, when absent)', once)
    .action(async (options) => ends(await (await import('./stop.ts')).stop(options)));
  command('stops', 'what is stopped, how far it has come, what was out and what waits')
    .argument('[id]', 'one of them (stp_…), also when it was lifted')
    .action(async (id: string | undefined, options) =>
      ends(await (await import('./stop.ts')).stops(id, options)),
    );
  command('lift', 'end a stop: shows what waits first; for new work only, unless something is released')
    .argument('<id>', 'the stop (stp_…)')
    .option('--digest <digest>', 'of the list that was shown, or at least its first 12 digits', once)
    .option('--release', 'also all that waits, each judged again')
    .option('--list <file>', 'or some of it: a list that was kept (lift ID --json)', once)
    .option('--by <name>', 'who lifts it (this account, when absent)', once)
    .action(async (id: string, options) => ends(await (await import('./stop.ts')).lift(id, options)));
  command('cancel', 'cancel one operation or a run: nothing more of it is sent, and nothing is reversed')
    .argument('[id]', 'the operation (op_…)')
    .option('--run <id>', 'in its place: a run', once)
    .option('--by <name>', 'who cancels (this account, when absent)', once)
    .action(async (id: string | undefined, options) =>
      ends(await (await import('./cancel.ts')).cancel(id, options)),
    );
}
