// `counterfoil policy`: what is in force and what waits, which classes were confirmed, and what was recorded suggests.

import { suggestClasses, type ToolSuggestion } from '../core/suggestion.ts';
import type { Ledger, OwnerRule } from '../engine/ledger.ts';
import type { PolicyState } from '../engine/policies.ts';
import { localAccount } from './account.ts';
import { dataDirectory, withLedger } from './data-directory.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { askPassphrase, knownOwner } from './passphrase.ts';
import { readOperations } from './recorded.ts';
import { toType } from './starter.ts';

export interface PolicyOptions {
  readonly data?: string;
  readonly json?: boolean;
}

export async function showPolicy(options: PolicyOptions): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const [policies, rules] = [await ledger.policies.all(), await ledger.rules()];
    const passphrase = await knownOwner(ledger, dataDirectory(options.data));
    if (options.json === true) {
      printJson({ passphraseSet: passphrase !== undefined, policies: policies.map(policyJson), rules });
      return EXIT.done;
    }
    print(
      passphrase === undefined
        ? `No passphrase is set: what cannot be taken back cannot be approved. Set one: ${toType('passphrase set')}`
        : `The owner's passphrase was set by ${printable(passphrase.state.setBy)} at ${instant(passphrase.state.setAt)}.`,
    );
    for (const policy of policies) for (const line of policyLines(policy)) print(line);
    if (rules.length === 0) print('No rules have been confirmed.');
    else for (const rule of rules) print(ruleLine(rule));
    return EXIT.done;
  });
}

function policyJson({ destination, inForce, waiting }: PolicyState): object {
  const { sources: _texts, ...present } = inForce;
  if (waiting === undefined) return { destination, inForce: present, configuration: inForce.sources.text };
  const { sources: _waitingTexts, ...next } = waiting;
  return { destination, inForce: present, configuration: inForce.sources.text, waiting: next };
}

const HOW = {
  first: 'the first that was seen (same_account)',
  no_looser: 'taken from its file, as it loosens nothing (same_account)',
  passphrase: 'confirmed (passphrase)',
  reverted: 'put back, as it loosens nothing (same_account)',
} as const;

function policyLines({ destination, inForce, waiting }: PolicyState): readonly string[] {
  const lines = [
    `${destination}  configuration ${inForce.digest.slice(0, 12)} in force since ${instant(inForce.at)}, by ${printable(inForce.by)}: ${HOW[inForce.how]}`,
  ];
  if (waiting === undefined) return lines;
  return [
    ...lines,
    `  Not in force: ${waiting.digest.slice(0, 12)}, seen at ${instant(waiting.at)}, which loosens:`,
    ...waiting.loosens.map((sentence) => `    ${printable(sentence)}`),
    `  To confirm: ${toType(`policy confirm ${destination} --digest ${waiting.digest.slice(0, 12)}`)}`,
  ];
}

export function ruleLine(rule: OwnerRule): string {
  const end = rule.revokedAt === undefined ? 'in force' : `revoked at ${instant(rule.revokedAt)}`;
  const strength = rule.strength === undefined ? '' : ` (strength: ${rule.strength})`;
  return `${printable(rule.destination)}/${printable(rule.tool)}  ${rule.class}  confirmed by ${printable(rule.by)} at ${instant(rule.at)}${strength}, ${end}`;
}

const DIGEST_PREFIX = /^[0-9a-f]{12,64}$/;

export async function confirmPolicy(
  destination: string,
  options: PolicyOptions & { readonly digest: string },
): Promise<number> {
  if (!DIGEST_PREFIX.test(options.digest)) {
    throw new CommandFault(
      EXIT.usage,
      `--digest wants at least the first 12 digits of the configuration's digest (0-9, a-f), and was given ${printable(JSON.stringify(options.digest))}.`,
    );
  }
  return withLedger(options.data, async (ledger) => {
    const state = await ledger.policies.of(destination);
    const waiting = state?.waiting;
    if (waiting === undefined) {
      throw new CommandFault(
        EXIT.notFound,
        `No configuration of ${printable(destination)} waits to be confirmed. See: ${toType('policy show')}`,
      );
    }
    if (!waiting.digest.startsWith(options.digest)) throw otherDigest(destination);
    await askPassphrase(ledger, options.data, 'Loosening a rule', [
      `To be confirmed: the configuration ${waiting.digest.slice(0, 12)} of ${destination}, which loosens:`,
      ...waiting.loosens.map((sentence) => `    ${printable(sentence)}`),
    ]);
    const by = localAccount();
    if ((await ledger.policies.confirm(destination, waiting.digest, by)) !== 'confirmed')
      throw otherDigest(destination);
    if (options.json === true) printJson({ destination, digest: waiting.digest, by, strength: 'passphrase' });
    else
      print(
        `The configuration ${waiting.digest.slice(0, 12)} of ${destination} is in force from its gateway's next start.`,
      );
    return EXIT.done;
  });
}

function otherDigest(destination: string): CommandFault {
  return new CommandFault(
    EXIT.conflict,
    `Nothing was confirmed: the digest given is not that of the configuration of ${printable(destination)} that waits. Look at it again: ${toType('policy show')}`,
  );
}

export async function revokeRule(name: string, options: PolicyOptions): Promise<number> {
  const slash = name.indexOf('/');
  const destination = name.slice(0, Math.max(slash, 0));
  const tool = name.slice(slash + 1);
  return withLedger(options.data, async (ledger) => {
    const rule = await ledger.rule(destination, tool);
    const strength = rule?.class === 'irreversible' ? 'passphrase' : 'same_account';
    if (strength === 'passphrase') {
      await askPassphrase(ledger, options.data, 'Loosening a rule', [
        `To be revoked: ${printable(name)} is irreversible, and a person is asked each time.`,
      ]);
    }
    if ((await ledger.revokeRule(destination, tool, localAccount(), strength)) !== 'revoked') {
      throw new CommandFault(
        EXIT.notFound,
        `There is no rule in force for ${printable(name)}. List them: ${toType('policy show')}`,
      );
    }
    const rules = await ledger.rules();
    if (options.json === true) printJson({ rules });
    else for (const each of rules) print(ruleLine(each));
    return EXIT.done;
  });
}

/** A configuration to start from, with what each line rests on. Nothing is changed by it. */
export async function suggestPolicy(options: PolicyOptions): Promise<number> {
  return withLedger(options.data, async (ledger) => {
    const suggestions = await suggested(ledger);
    if (options.json === true) {
      printJson({ suggestions });
      return EXIT.done;
    }
    if (suggestions.length === 0) {
      print('# No write has been recorded, so nothing can be suggested.');
      return EXIT.done;
    }
    print('# Suggested from what was recorded; a person decides. Nothing is in force by this.');
    for (const destination of new Set(suggestions.map((suggestion) => suggestion.destination))) {
      print(`# --config for ${destination}`);
      print(`destination: ${destination}`);
      const own = suggestions.filter((suggestion) => suggestion.destination === destination);
      const isDeclared = own.some(
        (suggestion) => suggestion.class !== undefined || suggestion.repeat !== undefined,
      );
      print(isDeclared ? 'tools:' : 'tools: {}');
      for (const suggestion of own) for (const line of suggestionLines(suggestion)) print(line);
    }
    return EXIT.done;
  });
}

async function suggested(ledger: Ledger): Promise<readonly ToolSuggestion[]> {
  return suggestClasses((await readOperations(ledger)).operations);
}

function suggestionLines(suggestion: ToolSuggestion): readonly string[] {
  const { because, present, repeat, tool } = suggestion;
  const name = /^[A-Za-z_][\w-]*$/.test(tool) ? tool : JSON.stringify(tool);
  const members = [
    ...(suggestion.class === undefined ? [] : [`class: ${suggestion.class}`]),
    ...(repeat === undefined ? [] : [`repeat: ${repeat}`]),
  ];
  if (members.length === 0) return [`  # ${name}: ${present} now; what was recorded says no more`];
  return [`  # ${name}: ${present} now; ${because.join('; ')}`, `  ${name}: {${members.join(', ')}}`];
}
