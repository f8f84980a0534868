// `counterfoil policy check`, `explain`, `history` and `revert`: what rules would do, what they say of one operation and
// why, what was in force when, and how an earlier configuration is put back.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { compileToolFacts } from '../contracts/compile.ts';
import { type GatewaySetup, loadGatewaySetup } from '../contracts/load.ts';
import { loosenedBy } from '../contracts/policy-change.ts';
import { formatProblem } from '../contracts/problem.ts';
import type { JsonObject } from '../core/canonical.ts';
import type { ToolFacts } from '../core/contract.ts';
import type { Operation } from '../core/operation.ts';
import { judgePolicy, type PolicyCall, type RecordedVerdict, spokenOf } from '../core/policy.ts';
import { type Trial, type TrialLine, tryPolicy } from '../core/policy-trial.ts';
import { demandWords, reasonWords } from '../core/wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import { setupOf } from '../gateway/policy-in-force.ts';
import { localAccount } from './account.ts';
import { withLedger } from './data-directory.ts';
import { reasonOf } from './gateway-setup.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { askPassphrase } from './passphrase.ts';
import type { PolicyOptions } from './policy.ts';
import { readOperations } from './recorded.ts';
import { toType } from './starter.ts';

const TRIED_MAX = 1_000;
const SHOWN_MAX = 20;

// ── check ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A configuration is read and tried against what is recorded; nothing comes into force by it. */
export async function checkPolicy(file: string, options: PolicyOptions): Promise<number> {
  const setup = loadFile(file);
  const { destination, policy } = setup.config.value;
  const checked = await againstLedger(setup, options);
  const rules = policy?.rules.length ?? 0;
  if (options.json === true) {
    printJson({ destination, rules, loosens: checked?.loosens ?? null, trial: checked?.trial ?? null });
    return EXIT.done;
  }
  print(`${printable(file)}: ${counted(rules, 'rule')} for ${destination}. It can be used.`);
  if (checked === undefined) {
    print('Nothing is recorded here that it could be tried against.');
    return EXIT.done;
  }
  if (checked.loosens === undefined) print('No configuration is in force for it yet.');
  else if (checked.loosens.length === 0) print('It loosens nothing of the configuration in force.');
  else {
    print('It loosens the configuration in force, and would wait to be confirmed:');
    for (const sentence of checked.loosens) print(`    ${printable(sentence)}`);
  }
  for (const line of trialLines(checked.trial)) print(line);
  return EXIT.done;
}

function loadFile(file: string): GatewaySetup {
  const path = resolve(file);
  const readText = (name: string) => {
    try {
      return { text: readFileSync(resolve(dirname(path), name), 'utf8') };
    } catch (cause) {
      return { reason: reasonOf(cause) };
    }
  };
  const opened = readText(path);
  if ('reason' in opened)
    throw new CommandFault(
      EXIT.usage,
      `The configuration ${printable(file)} cannot be read: ${opened.reason}.`,
    );
  const setup = loadGatewaySetup(opened.text, file, { readText });
  if (!setup.ok) throw new CommandFault(EXIT.usage, setup.problems.map(formatProblem).join('\n'));
  return setup;
}

async function againstLedger(
  setup: GatewaySetup,
  options: PolicyOptions,
): Promise<{ readonly loosens: readonly string[] | undefined; readonly trial: Trial } | undefined> {
  try {
    return await withLedger(options.data, async (ledger) => {
      const { destination } = setup.config.value;
      const state = await ledger.policies.of(destination);
      const earlier = state === undefined ? undefined : setupOf(state.inForce.sources);
      return {
        loosens: earlier?.ok === true ? loosenedBy(setup, earlier) : undefined,
        trial: tryPolicy(await recordedCalls(ledger, setup)),
      };
    });
  } catch (cause) {
    if (cause instanceof CommandFault && cause.exitCode === EXIT.notFound) return undefined;
    throw cause;
  }
}

/** The newest writes to the destination, in the order in which they came. */
async function recordedCalls(ledger: Ledger, setup: GatewaySetup) {
  const { operations } = await readOperations(ledger);
  const { destination } = setup.config.value;
  const own = operations
    .filter((one) => one.destination === destination && one.why?.code !== 'arguments')
    .slice(0, TRIED_MAX)
    .toReversed();
  const calls = [];
  for (const operation of own) {
    const { arguments: args } = (await ledger.readings.reading(operation)).payload;
    const facts = factsOf(setup, operation, args);
    if (facts.class !== 'read')
      calls.push({ operation: operation.id, facts, call: callOf(operation, args, facts) });
  }
  return calls;
}

/** As the files say; of a tool that they do not name, as it was when it was recorded. */
function factsOf(
  { bindings, config, contracts }: GatewaySetup,
  operation: Operation,
  args: JsonObject,
): ToolFacts {
  const { destination, tool, toolClass } = operation;
  const facts = compileToolFacts({
    destination,
    tool,
    arguments: args,
    binding: bindings.find(({ value }) => value.tools.some((row) => row.tool === tool))?.value,
    contracts: contracts.map(({ value }) => value),
    config: config.value,
    hints: undefined,
    ownerRules: [],
    toolDigest: '',
  });
  return facts.class === 'unclassified' ? { ...facts, class: toolClass } : facts;
}

function callOf(operation: Operation, args: JsonObject, facts: ToolFacts): PolicyCall {
  const { destination, requester, run, tool } = operation;
  return {
    arguments: args,
    requester,
    run: { id: run.id, ...(run.step === undefined ? {} : { step: run.step }) },
    destination,
    tool,
    class: facts.class,
  };
}

function trialLines({ lines, total }: Trial): readonly string[] {
  if (total === 0) return ['No write to it is recorded that it could be tried against.'];
  const waited = lines.filter(({ outcome }) => outcome === 'waits').length;
  const refused = lines.length - waited;
  return [
    `${waited} of ${total} recorded writes would have waited for a person, ${refused} would have been refused.`,
    ...lines.slice(-SHOWN_MAX).map((line) => `    ${trialLine(line)}`),
    ...(lines.length > SHOWN_MAX ? [`    … and ${lines.length - SHOWN_MAX} before these`] : []),
    'What must have happened before another write was not tried.',
  ];
}

function trialLine({ because, operation, outcome, question, tool }: TrialLine): string {
  const why = because === undefined ? `as it is ${question ?? 'asked about'}` : reasonWords(because);
  return `${operation}  ${printable(tool)}  ${outcome}: ${why}`;
}

// ── explain ────────────────────────────────────────────────────────────────────────────────────────────────

/** What the rules said of an operation when it was proposed, and what those in force say now. */
export async function explainPolicy(id: string, options: PolicyOptions): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const reading = await ledger.readings.operation(id);
    if (reading === undefined)
      throw new CommandFault(EXIT.notFound, `No operation ${printable(id)} is recorded here.`);
    const { operation, payload } = reading;
    const now = await rulesNow(ledger, operation, payload.arguments);
    const access = await standings(ledger, operation);
    if (options.json === true) {
      printJson({
        operation: operation.id,
        requester: operation.requester,
        proposed: operation.policy ?? null,
        allowedBy: operation.rule ?? null,
        review: operation.review ?? null,
        now: now ?? null,
        access,
      });
      return EXIT.done;
    }
    print(
      `${operation.id}  ${printable(operation.tool)} on ${operation.destination}, asked for by ${printable(operation.requester)}`,
    );
    print(`When it was proposed: ${recordedWords(operation.policy, operation.rule)}`);
    if (operation.review?.demands !== undefined)
      print(`Its approval: ${demandWords(operation.review.demands).map(printable).join('; ')}.`);
    if (now === undefined) print('No rules are in force for it now.');
    else {
      print(`Now: ${outcomeWords(now.verdict)}`);
      for (const line of now.lines) print(`    ${printable(line)}`);
    }
    for (const { lost, principal } of access)
      if (lost !== null) print(`The access of ${printable(principal)}: ${lost.replace('_', ' ')}.`);
    return EXIT.done;
  });
}

function recordedWords(verdict: RecordedVerdict | undefined, rule: string | undefined): string {
  const allowed = rule === undefined ? '' : ` It was allowed by ${printable(rule)}.`;
  if (verdict === undefined) return `no rules were in force for it.${allowed}`;
  return `${outcomeWords(verdict)}${allowed}`;
}

const OUTCOMES = {
  none: 'no rule asked for anything',
  allow: 'a rule let it go',
  ask: 'a rule wanted a person to decide',
  refuse: 'a rule refused it',
} as const;

function outcomeWords({ because, outcome, policy }: RecordedVerdict): string {
  const why = because === undefined ? '' : `: ${printable(reasonWords(because))}`;
  return `${OUTCOMES[outcome]}${why} (policy ${policy.slice(0, 12)}).`;
}

async function rulesNow(ledger: Ledger, operation: Operation, args: JsonObject) {
  const state = await ledger.policies.of(operation.destination);
  const setup = state === undefined ? undefined : setupOf(state.inForce.sources);
  if (setup?.ok !== true) return undefined;
  const facts = factsOf(setup, operation, args);
  if (facts.policy === undefined) return undefined;
  const call = callOf(operation, args, facts);
  const verdict = judgePolicy(facts.policy, call);
  const lines = spokenOf(facts.policy, call).map(({ rule, speaks }) => {
    const condition = rule.when === undefined ? '' : `, as ${rule.when.text}`;
    return `${JSON.stringify(rule.name)} ${speaks === 'yes' ? 'speaks of it' : 'cannot be judged for it'}${condition}`;
  });
  const before = verdict.requires.map(
    ({ effect, rule, tool }) =>
      `${JSON.stringify(rule)} wants ${tool} to be ${effect} before, in the same run`,
  );
  return { verdict, lines: [...lines, ...before] };
}

async function standings(ledger: Ledger, { requester, review }: Operation) {
  const decision = review?.decision;
  const approver = decision?.kind === 'approved' ? [decision.principal ?? decision.by] : [];
  const all = [];
  for (const principal of [requester, ...approver])
    all.push({ principal, lost: (await ledger.principals.lost(principal)) ?? null });
  return all;
}

// ── history and revert ─────────────────────────────────────────────────────────────────────────────────────

const CHANGES = {
  adopted: 'in force',
  waits_for_confirmation: 'waits to be confirmed',
  confirmed: 'confirmed, in force',
  reverted: 'put back, in force',
} as const;

export async function policyHistory(destination: string, options: PolicyOptions): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const changes = await ledger.policies.history(destination);
    if (changes.length === 0) throw noConfiguration(destination);
    if (options.json === true) {
      printJson({ destination, changes });
      return EXIT.done;
    }
    for (const { at, by, inForce, loosens = [], type, waiting } of changes) {
      print(`${instant(at)}  ${(waiting ?? inForce).slice(0, 12)}  ${CHANGES[type]}, by ${printable(by)}`);
      for (const sentence of loosens) print(`    loosens: ${printable(sentence)}`);
    }
    return EXIT.done;
  });
}

function noConfiguration(destination: string): CommandFault {
  return new CommandFault(
    EXIT.notFound,
    `No configuration of ${printable(destination)} was ever in force. See: ${toType('policy show')}`,
  );
}

const DIGEST_PREFIX = /^[0-9a-f]{12,64}$/;

/** An earlier configuration is put back; one that is looser than the present one needs the passphrase. */
export async function revertPolicy(
  destination: string,
  options: PolicyOptions & { readonly digest: string },
): Promise<number> {
  if (!DIGEST_PREFIX.test(options.digest))
    throw new CommandFault(
      EXIT.usage,
      `--digest wants at least the first 12 digits of the configuration's digest (0-9, a-f), and was given ${printable(JSON.stringify(options.digest))}.`,
    );
  return withLedger(options.data, async (ledger) => {
    const state = await ledger.policies.of(destination);
    if (state === undefined) throw noConfiguration(destination);
    const kept = await ledger.policies.version(destination, options.digest);
    if (!kept.found) throw notKept(destination, kept.why);
    const [next, present] = [setupOf(kept.sources), setupOf(state.inForce.sources)];
    if (!next.ok)
      throw new CommandFault(
        EXIT.conflict,
        `Nothing was changed: ${next.problems.map(formatProblem).join('; ')}`,
      );
    const loosens = present.ok
      ? loosenedBy(next, present)
      : ['The configuration in force cannot be read any more.'];
    if (loosens.length > 0)
      await askPassphrase(ledger, options.data, 'Loosening a rule', [
        `To be put back: the configuration ${kept.digest.slice(0, 12)} of ${destination}, which loosens:`,
        ...loosens.map((sentence) => `    ${printable(sentence)}`),
      ]);
    const to = { digest: kept.digest, sources: kept.sources, from: state.inForce.digest };
    const how = loosens.length > 0 ? 'passphrase' : 'reverted';
    if (!(await ledger.policies.revert(destination, to, localAccount(), how)))
      throw new CommandFault(
        EXIT.conflict,
        'Nothing was changed: another configuration came into force meanwhile.',
      );
    if (options.json === true) printJson({ destination, digest: kept.digest, from: to.from, loosens });
    else
      print(
        `The configuration ${kept.digest.slice(0, 12)} of ${destination} is in force again. The files are as they were: what they say now, ${to.from.slice(0, 12)}, waits for a confirmation when a gateway starts with it.`,
      );
    return EXIT.done;
  });
}

function notKept(destination: string, why: 'unknown' | 'not_kept' | 'in_force'): CommandFault {
  if (why === 'in_force')
    return new CommandFault(EXIT.conflict, 'Nothing was changed: that configuration is in force.');
  const what =
    why === 'unknown'
      ? `No configuration of ${printable(destination)} has that digest`
      : 'The texts of that configuration were not kept';
  return new CommandFault(EXIT.notFound, `${what}. See: ${toType(`policy history ${destination}`)}`);
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
