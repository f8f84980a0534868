// Facts about a tool against the tool as its server lists it: what names an argument must name one that exists.

import type { ToolFacts } from '../core/contract.ts';
import { templateNames } from '../core/template.ts';
import { closest, listed } from './problem.ts';

/**
 * Sentences about arguments that the facts name and the tool does not have; none where its schema lists no members.
 *
 * An identity with a misspelt argument would make one intent of all its calls, so that a tool with such facts must
 * not be answered from them.
 */
export function checkToolArguments(facts: ToolFacts, inputSchema: unknown): string[] {
  const known = argumentsOf(inputSchema);
  if (known === undefined) return [];
  const { tool, identity = [], target, stamp, operation } = facts;
  const questions = [
    ...(operation?.lookups ?? []).map(({ tool: question, found }) => [question?.arguments, found]),
    [operation?.readback?.tool?.arguments, operation?.readback?.matches],
  ];
  const used: [string, readonly string[]][] = [
    ['identity', identity],
    ['target', templateNames([target?.id])],
    ['stamp', stamp === undefined ? [] : [stamp.argument]],
    ['look-up or read-back', templateNames(questions)],
  ];
  return used.flatMap(([what, names]) =>
    names
      .filter((name) => !name.startsWith('$'))
      .map((name) => (name.split('/', 1)[0] ?? '').replaceAll('~1', '/').replaceAll('~0', '~'))
      .filter((name) => !known.includes(name))
      .map(
        (name) =>
          `The ${what} of ${tool} names the argument ${name}, which the tool does not have; ${hint(name, known)}`,
      ),
  );
}

function hint(name: string, known: readonly string[]): string {
  const near = closest(name, known);
  if (near !== undefined) return `did you mean ${near}?`;
  return known.length === 0 ? 'it has none.' : `it has ${listed(known)}.`;
}

function argumentsOf(inputSchema: unknown): readonly string[] | undefined {
  if (typeof inputSchema !== 'object' || inputSchema === null) return undefined;
  const { properties } = inputSchema as { readonly properties?: unknown };
  return typeof properties === 'object' && properties !== null ? Object.keys(properties) : undefined;
}
