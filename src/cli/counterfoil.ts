#!/usr/bin/env node
// The `counterfoil` command: reads the command line, runs one command, ends with its exit code.

import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { CommandFault, EXIT, printed, say } from './output.ts';
import { queueCommands } from './queue-commands.ts';
import { toType, VIAS } from './starter.ts';
import { stopCommands } from './stop-commands.ts';
import { packageVersion } from './version.ts';

/** An option that is given twice, or as nothing (a variable that was not set), is not what its caller meant. */
function once(value: string, earlier: string | undefined): string {
  if (earlier !== undefined) throw new InvalidArgumentError('It was given twice.');
  if (value.trim() === '') throw new InvalidArgumentError('It is empty.');
  return value;
}

/** An option that may be given more than once. */
function each(value: string, earlier: readonly string[] = []): readonly string[] {
  if (value.trim() === '') throw new InvalidArgumentError('It is empty.');
  return [...earlier, value];
}

const DATA = [
  '--data <dir>',
  'the data directory (else COUNTERFOIL_DATA, else the user data directory)',
  once,
] as const;
const JSON_OUT = ['--json', 'print one JSON object'] as const;
const DIGEST = [
  '--digest <digest>',
  'the digest that was shown, or at least its first 12 digits',
  once,
] as const;
const REVIEW = [
  '--review <id>',
  'the review that was looked at (rev_…), where it takes the place of an earlier one',
  once,
] as const;
const BY = ['--by <name>', 'who decides (this account, when absent)', once] as const;
const CODES =
  '\nExit codes: 0 as asked · 1 internal · 2 usage or configuration · 3 not found · 4 not allowed · 5 conflict ·\n10 waiting for approval, or to be sent · 11 accepted, not checked · 12 outcome unknown (never repeat it) · 13 not sent or rejected · 14 stopped';

let exitCode: number = EXIT.done;

function storeCommands(root: Command): void {
  const waive = [
    '--waive <setting>',
    'fsync, full_page_writes or synchronous_commit: a setting of the server that may be unsafe; may be given more than once',
    each,
  ] as const;
  const store = root.command('store').description('where the ledger is: on this machine, or on PostgreSQL');
  store
    .command('use')
    .description('from now on the ledger of this data directory is on PostgreSQL, and may be shared')
    .argument('<url>', 'postgres://USER@HOST:PORT/DATABASE, with ?schema=NAME; the password by PGPASSFILE')
    .option(...waive)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (url: string, options) => {
      exitCode = await (await import('./store.ts')).storeUse(url, options);
    });
  store
    .command('status')
    .description('where the ledger is, and what its store says of its own durability')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./store.ts')).storeStatus(options);
    });
  store
    .command('migrate')
    .description('make the tables on PostgreSQL, or print what makes them')
    .argument('[url]', 'as for store use (else the store of the data directory)')
    .option('--print', 'only print the statements, for somebody else to run')
    .option(...waive)
    .option(...DATA)
    .action(async (url: string | undefined, options) => {
      exitCode = await (await import('./store.ts')).storeMigrate(url, options);
    });
  store
    .command('check')
    .description(
      'try whether a database does what the store asks of one, in a schema that is removed afterwards',
    )
    .argument('<url>', 'as for store use')
    .option(...waive)
    .option(...JSON_OUT)
    .action(async (url: string, options) => {
      exitCode = await (await import('./store.ts')).storeCheck(url, options);
    });
}

/** Each command is loaded when it is used, so that the gateway starts fast. */
function program(): Command {
  const root = new Command('counterfoil')
    .description('The record that stays when an AI agent writes to a system.')
    .version(packageVersion())
    .addHelpText('after', CODES)
    .exitOverride()
    .configureOutput({ writeErr: (text) => say(text.trimEnd()) });
  root
    .command('mcp')
    .description(
      'stand in front of one MCP server over stdio: reads pass, writes are recorded and told truthfully',
    )
    .argument('[command...]', 'after --: the server to start, with its arguments')
    .option('--name <name>', 'the name that the destination is recorded under', once)
    .option('--url <address>', 'in its place: the address of a server over HTTP', once)
    .option(
      '--url-env <variable>',
      'the same, where the address holds a secret: the variable that has it',
      once,
    )
    .option(
      '--header-env <name:variable>',
      'a header for that server, and the variable that has its value; may be given more than once',
      each,
    )
    .option('--config <file>', 'what its owner decides about the server (YAML or JSON)', once)
    .option(...DATA)
    .option('--run <id>', 'the run that all calls belong to', once)
    .option('--no-resident', 'everything in this process, which ends with its client')
    .showHelpAfterError(`The server and its own options come after --: ${toType('mcp -- COMMAND ARGS…')}`)
    .action(async (command: string[], options) => {
      // Not waited for: the client may have stopped reading, and is gone.
      process.exit(await (await import('./mcp.ts')).mcp(command, options));
    });
  root
    .command('init')
    .description('find the servers of your MCP clients, show what each can do, and guard them')
    .option('--client <name>', 'only this client; may be given more than once', each)
    .option('--server <name>', 'only this server; may be given more than once', each)
    .option('--dry-run', "show the change, and leave every client's file as it is")
    .option('--yes', 'start the servers and write the change without asking')
    .addOption(
      new Option('--via <way>', 'how clients start us: this installation, or npx with this version').choices(
        VIAS,
      ),
    )
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./init.ts')).init(options);
    });
  root
    .command('leave')
    .description("take back what init has changed in clients' files; what is recorded stays, and is exported")
    .option('--yes', 'write the change without asking')
    .option('--export <file>', 'where the records are written, as lines of JSON', once)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./leave.ts')).leave(options);
    });
  root
    .command('doctor')
    .description('look at the store, the clients and what passes unguarded; each line says what to do')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./doctor.ts')).doctor(options);
    });
  root
    .command('resident')
    .description(
      'what serves all clients of this account: started by the first counterfoil mcp, ends by itself',
    )
    .option(...DATA)
    .option(
      '--config <file>',
      'what the first client asks for: nothing is started where it cannot be meant',
      once,
    )
    .option('--name <name>', 'the same', once)
    .option('--run <id>', 'the same', once)
    .action(async (options) => {
      process.exit(await (await import('./resident.ts')).resident(options));
    });
  root
    .command('serve')
    .description('stand in front of several MCP servers over HTTP, for this machine or for a team')
    .requiredOption(
      '--config <file>',
      'which servers, and where to listen: our own file, or one of an MCP client',
      once,
    )
    .option(...DATA)
    .option('--host <address>', 'the address to listen on (127.0.0.1, when absent)', once)
    .option('--port <port>', 'the port to listen on; 0 takes any that is free (3210, when absent)', once)
    .action(async (options) => {
      process.exit(await (await import('./serve.ts')).serve(options));
    });
  root
    .command('servers')
    .description('the servers of a file as counterfoil serve would serve them, and why not')
    .requiredOption('--config <file>', 'our own file, or one of an MCP client (mcpServers, or servers)', once)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = (await import('./served-servers.ts')).servers(options);
    });
  tokenCommands(root);
  storeCommands(root);
  principalCommands(root);
  root
    .command('show')
    .description('one operation: what was asked, who allowed it, what was tried, what is known and how')
    .argument('[id]', 'the operation (op_…)')
    .option('--last', 'the newest operation')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (id: string | undefined, options) => {
      exitCode = await (await import('./show.ts')).show(id, options);
    });
  const common = {
    data: DATA,
    json: JSON_OUT,
    once,
    ends: (code: number) => {
      exitCode = code;
    },
  };
  queueCommands(root, common);
  stopCommands(root, common);
  root
    .command('approve')
    .description(
      'allow one operation, exactly as it was shown; or, with --run, what waits in a run as one list',
    )
    .argument('[id]', 'the operation (op_…)')
    .option('--run <run>', 'show the list of a run; with its --digest, approve it as one decision', once)
    .option(...DIGEST)
    .option(...REVIEW)
    .option(...BY)
    .addOption(
      new Option('--class <class>', 'for a tool that nobody has classified: what it is from now on').choices([
        'read',
        'ordinary',
        'irreversible',
        'interactive',
      ]),
    )
    .option(...DATA)
    .option(...JSON_OUT)
    .option('--dry-run', 'with --run: tell what would be decided, and record nothing')
    .action(async (id: string | undefined, options) => {
      exitCode = await (await import('./approve.ts')).approve(id, options);
    });
  root
    .command('deny')
    .description('refuse one operation; the reason reaches the model')
    .argument('<id>', 'the operation (op_…)')
    .requiredOption(...DIGEST)
    .option(...REVIEW)
    .option('--reason <text>', 'why, in words for the requester', once)
    .option(...BY)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (id: string, options) => {
      exitCode = await (await import('./decide.ts')).decideReview(id, 'denied', options);
    });
  root
    .command('revoke')
    .description('take an approval back: nothing more is sent under it, and what has left is not recalled')
    .argument('<id>', 'the operation (op_…)')
    .requiredOption(...DIGEST)
    .option('--reason <text>', 'why, for whoever is asked next', once)
    .option(...BY)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (id: string, options) => {
      exitCode = await (await import('./revoke.ts')).revokeApproval(id, options);
    });
  const grant = root
    .command('grant')
    .description('kinds of writes that are sent without asking, in one run and for a time');
  grant
    .command('give')
    .description('for the tool of a waiting operation, in its run; asks for the passphrase')
    .argument('<id>', 'the operation that waits (op_…)')
    .requiredOption(...DIGEST)
    .requiredOption('--for <time>', 'such as 15m, 2h or PT1H; at most 24h', once)
    .option(...BY)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (id: string, options) => {
      exitCode = await (await import('./grant.ts')).giveGrant(id, options);
    });
  grant
    .command('list')
    .description('what was granted, in words, with what has ended')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./grant.ts')).listGrants(options);
    });
  grant
    .command('revoke')
    .description('end a grant at once')
    .argument('<grant>', 'as grant list names it (grant_…)')
    .option(...BY)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (id: string, options) => {
      exitCode = await (await import('./grant.ts')).revokeGrant(id, options);
    });
  root
    .command('again')
    .description('ask for a write that is done once more: opens a review, which shows the first one')
    .argument('<id>', 'the operation that is done (op_…)')
    .requiredOption('--reason <text>', 'why a second one is wanted, in words for whoever decides', once)
    .option('--by <name>', 'who asks (this account, when absent)', once)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (id: string, options) => {
      exitCode = await (await import('./again.ts')).again(id, options);
    });
  const policy = root
    .command('policy')
    .description('what is in force for each server, and the classes that were confirmed');
  policy
    .command('show')
    .description('configurations in force and waiting, and the confirmed classes')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./policy.ts')).showPolicy(options);
    });
  policy
    .command('suggest')
    .description('a configuration to start from, out of what was recorded')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./policy.ts')).suggestPolicy(options);
    });
  policy
    .command('confirm')
    .description('let a configuration that loosens something come into force; asks for the passphrase')
    .argument('<destination>', 'the server, by its name in the configuration')
    .requiredOption(...DIGEST)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (destination: string, options) => {
      exitCode = await (await import('./policy.ts')).confirmPolicy(destination, options);
    });
  policy
    .command('check')
    .description('read a configuration, and say what its rules would have done with what is recorded')
    .argument('<file>', 'the configuration')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (file: string, options) => {
      exitCode = await (await import('./policy-rules.ts')).checkPolicy(file, options);
    });
  policy
    .command('explain')
    .description('what the rules said of an operation, and what they say now')
    .argument('<id>', 'the operation (op_…)')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (id: string, options) => {
      exitCode = await (await import('./policy-rules.ts')).explainPolicy(id, options);
    });
  policy
    .command('history')
    .description('what was in force for a server, since when, by whom')
    .argument('<destination>', 'the server, by its name in the configuration')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (destination: string, options) => {
      exitCode = await (await import('./policy-rules.ts')).policyHistory(destination, options);
    });
  policy
    .command('revert')
    .description('put an earlier configuration back; asks for the passphrase where it loosens anything')
    .argument('<destination>', 'the server, by its name in the configuration')
    .requiredOption(...DIGEST)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (destination: string, options) => {
      exitCode = await (await import('./policy-rules.ts')).revertPolicy(destination, options);
    });
  policy
    .command('revoke')
    .description('end the class that was confirmed for a tool: it asks again')
    .argument('<destination/tool>', 'the rule to end')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (rule: string, options) => {
      exitCode = await (await import('./policy.ts')).revokeRule(rule, options);
    });
  root
    .command('report')
    .description(
      'what was written, what is unclear, what each mode would have asked, which repeats were caught',
    )
    .option('--run <id>', 'of one run only', once)
    .option('--since <instant>', 'from this day or instant on', once)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./report.ts')).report(options);
    });
  root
    .command('find')
    .description(
      'an operation by any name: an id or its beginning, the record or its address, a run, thread or trace',
    )
    .argument('<name>', 'what it is known as')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (name: string, options) => {
      exitCode = await (await import('./find.ts')).find(name, options);
    });
  const trying = root
    .command('try')
    .description('see what happens, in a scratch folder, through the same gateway');
  trying
    .command('lost-reply')
    .description('a write arrives, its answer is lost, the agent calls again: with and without the gateway')
    .option('--keep', 'leave the scratch folder, to look at it')
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./try.ts')).tryLostReply(options);
    });
  root
    .command('demo')
    .description(
      'seven short stories with real faults: what the destination holds, with and without the gateway',
    )
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./demo.ts')).demo(options);
    });
  contractCommands(root);
  const passphrase = root
    .command('passphrase')
    .description('the passphrase by which the owner approves what cannot be taken back');
  passphrase
    .command('set')
    .description('set it, once; it is asked on the terminal')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./passphrase.ts')).setPassphrase(options);
    });
  passphrase
    .command('change')
    .description('change it; the present one is asked first')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./passphrase.ts')).changePassphrase(options);
    });
  return root;
}

function contractCommands(root: Command): void {
  const contract = root
    .command('contract')
    .description('facts about the writes of a destination: check them, or draft them');
  contract
    .command('check')
    .description('what may happen by itself after a lost reply and what not, and what is left open')
    .argument('[file...]', 'contracts, or ids of shipped ones (all that are shipped, when absent)')
    .option('--config <file>', 'what its owner decides: owners, ways back, windows, and its contracts', once)
    .option('--tools <file>', 'what tools/list gave, to look at the arguments as well', once)
    .option('--strict', 'end with 2 where anything is left open and not waived')
    .option(...JSON_OUT)
    .action(async (files: string[], options) => {
      exitCode = (await import('./contract.ts')).checkContracts(files, options);
    });
  contract
    .command('trust')
    .description(
      'count on the guard of a tool again, which its destination has passed over; asks for the passphrase',
    )
    .argument('<destination/tool>', 'as doctor names it')
    .option('--by <name>', 'who says so (this account, when absent)', once)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (name: string, options) => {
      exitCode = await (await import('./trust.ts')).trustGuard(name, options);
    });
  contract
    .command('draft')
    .description('a contract to start from, all of it assumed, with the questions to answer')
    .option('--openapi <file>', 'from an OpenAPI description', once)
    .argument('[command...]', 'after --: an MCP server, which is started and asked for its tools alone')
    .option('--tools <file>', 'from a file with what tools/list of an MCP server gave', once)
    .option('--id <id>', 'what it is called', once)
    .option(...JSON_OUT)
    .action(async (command: string[], options) => {
      exitCode = await (await import('./contract.ts')).draftContract(command, options);
    });
  root
    .command('blueprint')
    .description('what is agreed about each tool, on one page, and what is missing')
    .option('--config <file>', 'of this configuration (what is in force here, when absent)', once)
    .option('--server <id>', 'of a shipped binding, or with it; may be given more than once', each)
    .option('--html', 'print one page of HTML')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./blueprint.ts')).blueprint(options);
    });
}

function tokenCommands(root: Command): void {
  const token = root.command('token').description('who may ask at counterfoil serve, by name');
  token
    .command('create')
    .description('make a token, which is shown this once')
    .argument('<name>', 'whom or what it is for; operations are recorded under token:NAME')
    .option('--server <name...>', 'the servers that it opens; all of them, when absent')
    .option('--read-only', 'it cannot write')
    .option('--expires <time>', 'such as 30d, 12h or P30D; never, when absent', once)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (name: string, options) => {
      exitCode = await (await import('./token.ts')).createToken(name, options);
    });
  token
    .command('list')
    .description('every token that was ever made')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./token.ts')).listTokens(options);
    });
  token
    .command('revoke')
    .description('end one: its next request is refused, and its open streams are cut')
    .argument('<name>', 'its name')
    .option(...DATA)
    .action(async (name: string, options) => {
      exitCode = await (await import('./token.ts')).revokeToken(name, options);
    });
}

function principalCommands(root: Command): void {
  const principal = root
    .command('principal')
    .description('persons, agents and services by name, and the end of their access');
  const NAME = ['<name>', 'such as token:planner or local:mara'] as const;
  principal
    .command('add')
    .description('say what it is, and until when it may act')
    .argument(...NAME)
    .option('--kind <kind>', 'person (the default), agent or service', once)
    .option('--expires <time>', 'such as 30d, 12h or P30D; never, when absent', once)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (name: string, options) => {
      exitCode = await (await import('./principal.ts')).addPrincipal(name, options);
    });
  principal
    .command('remove')
    .description('end its access: what it asked for or approved, and has not left, is held')
    .argument(...NAME)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (name: string, options) => {
      exitCode = await (await import('./principal.ts')).removePrincipal(name, options);
    });
  principal
    .command('restore')
    .description('give back access that was removed; asks for the passphrase')
    .argument(...NAME)
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (name: string, options) => {
      exitCode = await (await import('./principal.ts')).restorePrincipal(name, options);
    });
  principal
    .command('list')
    .description('everybody of whom something is recorded')
    .option(...DATA)
    .option(...JSON_OUT)
    .action(async (options) => {
      exitCode = await (await import('./principal.ts')).listPrincipals(options);
    });
}

// Whoever read our output or our talk may be gone (`| head`, a client that was killed); that is no fault of ours,
// and must not end what still has to be recorded.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

try {
  await program().parseAsync();
} catch (cause) {
  if (cause instanceof CommanderError) {
    // Help and version end with 0; every other complaint of the parser is about how it was called.
    exitCode = cause.exitCode === 0 ? EXIT.done : EXIT.usage;
  } else if (cause instanceof CommandFault) {
    say(`counterfoil: ${cause.message}`);
    exitCode = cause.exitCode;
  } else {
    say(
      `counterfoil: an internal fault: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`,
    );
    exitCode = EXIT.internal;
  }
}
await printed();
process.exit(exitCode);
