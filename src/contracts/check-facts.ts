// What cannot be true of a guard, a feed of changes, a batch or the roles of arguments, whatever the destination is.

import type { Contract, ContractOperation, Guard, GuardWindow } from '../core/contract.ts';
import { durationMs, lateArrivalMs } from '../core/contract.ts';
import { templateNames } from '../core/template.ts';
import { boundedPattern } from './bounded-pattern.ts';
import { closest, type Finding, listed, type Path } from './problem.ts';
import { isWithin } from './write-facts.ts';

/** `contract` gives the limits that hold where the operation has none of its own. */
export function checkFacts(operation: ContractOperation, contract: Contract, path: Path): readonly Finding[] {
  return [
    ...operation.guards.flatMap((guard, index) => checkGuard(operation, guard, [...path, 'guards', index])),
    ...checkLifetimes(operation, contract, path),
    ...checkFeed(operation, [...path, 'change_feed']),
    ...checkItems(operation, path),
    ...checkRoles(operation, [...path, 'roles']),
    ...checkArguments(operation, path),
  ];
}

function checkGuard({ id }: ContractOperation, guard: Guard, path: Path): readonly Finding[] {
  const findings = [...checkWindow(id, guard.window, [...path, 'window'])];
  const { pattern } = guard.carrier;
  const bounded = pattern === undefined ? undefined : boundedPattern(pattern);
  if (bounded?.ok === false) {
    findings.push({
      path: [...path, 'carrier', 'pattern'],
      sentence: `The pattern for the ${guard.kind} of ${id} ${bounded.problem}.`,
    });
  }
  return findings;
}

function checkWindow(id: string, window: GuardWindow, path: Path): readonly Finding[] {
  const findings: Finding[] = [];
  const say = (member: string, sentence: string) => findings.push({ path: [...path, member], sentence });
  const { at_least: least, at_most: most, kind } = window;
  const [leastMs, mostMs] = [durationMs(least), durationMs(most)];
  for (const member of ['at_least', 'at_most'] as const) {
    const given = window[member];
    if (given === undefined) continue;
    if (kind !== 'duration') {
      say(
        member,
        `The window of ${id} is ${kind}, and ${member} is ${given}; only a duration has a length by the clock.`,
      );
    } else if (durationMs(given) === 0) {
      say(member, `The window of ${id} has ${member} ${given}, which is no time at all.`);
    }
  }
  if (leastMs !== undefined && mostMs !== undefined && leastMs > mostMs) {
    say('at_least', `The window of ${id} is at least ${least} and at most ${most}, which cannot both hold.`);
  }
  if (kind === 'duration' && least === undefined && most === undefined) {
    say('kind', `The window of ${id} is a duration, and neither at_least nor at_most says how long it is.`);
  }
  if ((window.while !== undefined) !== (kind === 'while_state')) {
    const sentence =
      window.while === undefined
        ? `The window of ${id} lasts while the record is in a state, and while does not say in which.`
        : `The window of ${id} names the state ${JSON.stringify(window.while)}, and its kind is ${kind}; that needs while_state.`;
    say(window.while === undefined ? 'kind' : 'while', sentence);
  }
  return findings;
}

/** An absence that first counts when the look-up can no longer be asked never counts. */
function checkLifetimes(operation: ContractOperation, contract: Contract, path: Path): readonly Finding[] {
  const limits = { ...contract.limits, ...operation.limits };
  const lateMs = lateArrivalMs({ ...operation, limits });
  return operation.lookups.flatMap(({ available_for: available, consistency, proves }, index) => {
    const availableMs = durationMs(available);
    if (availableMs === undefined || proves.absent === 'nothing') return [];
    const neededMs = lateMs + (durationMs(consistency.settle) ?? 0);
    if (availableMs > neededMs) return [];
    return {
      path: [...path, 'lookups', index, 'available_for'],
      sentence: `A look-up of ${operation.id} can be asked for ${available}, and an absence first counts after ${neededMs / 1000} s; it can never prove one.`,
    };
  });
}

function checkFeed({ id, change_feed: feed }: ContractOperation, path: Path): readonly Finding[] {
  if (feed === undefined) return [];
  const isAsked = feed.request !== undefined || feed.tool !== undefined;
  if (feed.since === 'none' && (isAsked || feed.tells !== undefined)) {
    const sentence = `${id} has no feed of changes (since is none), and says how one is asked or what it tells.`;
    return [{ path: [...path, 'since'], sentence }];
  }
  if (feed.since !== 'none' && !isAsked) {
    const sentence = `The feed of changes of ${id} has neither a request nor a tool by which it is asked.`;
    return [{ path, sentence }];
  }
  return [];
}

function checkItems({ batch, id, identity, items }: ContractOperation, path: Path): readonly Finding[] {
  if (items === undefined) return [];
  const findings: Finding[] = [];
  const at = [...path, 'items'];
  if (batch !== 'per_item' && batch !== 'partial_possible') {
    const stated = batch === undefined ? 'is not stated' : `is ${batch}`;
    findings.push({
      path: at,
      sentence: `${id} has items with effects of their own, and its batch ${stated}; that needs per_item or partial_possible.`,
    });
  }
  if ((items.matched_by === 'key') !== (items.key !== undefined)) {
    const sentence =
      items.key === undefined
        ? `The items of ${id} are matched by a key, and key does not say where it stands.`
        : `The items of ${id} have a key, and are matched by ${items.matched_by}.`;
    findings.push({ path: [...at, items.key === undefined ? 'matched_by' : 'key'], sentence });
  }
  if (identity !== undefined && !identity.some((entry) => isWithin(items.argument, entry))) {
    findings.push({
      path: [...path, 'identity'],
      sentence: `The identity of ${id} leaves out ${items.argument}, which lists its items; calls for other items would be taken for one.`,
    });
  }
  return findings;
}

const ROLES = ['recipient', 'record', 'amount'] as const;

/** To whom, on what and how much are always business parameters (D6). */
function checkRoles({ id, identity, roles, stamp }: ContractOperation, path: Path): readonly Finding[] {
  return ROLES.flatMap((role) =>
    (roles?.[role] ?? []).flatMap((argument, index): readonly Finding[] => {
      const at = [...path, role, index];
      if (stamp !== undefined && isWithin(stamp.argument, argument)) {
        const sentence = `${argument} of ${id} is called its ${role}, and the stamp fills it; what we fill ourselves says nothing of the intent.`;
        return [{ path: at, sentence }];
      }
      if (identity === undefined || identity.some((entry) => isWithin(argument, entry))) return [];
      const sentence = `The identity of ${id} leaves out ${argument}, which is its ${role}; recipient, record and amount are always business parameters.`;
      return [{ path: at, sentence }];
    }),
  );
}

/** Where the request is stated, its arguments are known: a name that is none of them would never have a value. */
function checkArguments(operation: ContractOperation, path: Path): readonly Finding[] {
  const { http, id, identity = [], items, lookups, readback, roles = {}, target } = operation;
  if (http === undefined) return [];
  const known = [...new Set(argumentsIn([http.path, http.query, http.headers, http.body]))];
  const used: readonly (readonly [string, readonly string[], Path])[] = [
    ['identity', identity, ['identity']],
    ['target', argumentsIn([target?.id]), ['target']],
    ['item list', items === undefined ? [] : [items.argument], ['items', 'argument']],
    ...ROLES.map((role) => [role, roles[role] ?? [], ['roles', role]] as const),
    ...lookups.map(
      ({ found, http: asked }, index) =>
        ['look-up', argumentsIn([asked, found?.where, found?.content]), ['lookups', index]] as const,
    ),
    ['read-back', argumentsIn([readback?.http, readback?.matches]), ['readback']],
  ];
  return used.flatMap(([what, names, at]) =>
    [...new Set(names.map(firstPart))]
      .filter((name) => !known.includes(name))
      .map((name) => {
        const near = closest(name, known);
        const hint =
          near !== undefined
            ? `did you mean ${near}?`
            : known.length === 0
              ? 'it uses none.'
              : `it uses ${listed(known)}.`;
        return {
          path: [...path, ...at],
          sentence: `The ${what} of ${id} names the argument ${name}, which its request does not use; ${hint}`,
        };
      }),
  );
}

/** The arguments of the call that templates name, each by the first part of its name. */
function argumentsIn(templates: readonly unknown[]): readonly string[] {
  return templateNames(templates)
    .filter((name) => !name.startsWith('$'))
    .map((name) => firstPart(name.replace(/\?$/, '')));
}

function firstPart(name: string): string {
  return (name.split('/', 1)[0] ?? '').replaceAll('~1', '/').replaceAll('~0', '~');
}
