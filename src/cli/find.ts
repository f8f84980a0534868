// `counterfoil find`: an operation by any name that somebody has for it.

import type { Operation } from '../core/operation.ts';
import { type FoundBy, foundBy, foundInContent } from '../core/search.ts';
import { labelOf, sentenceOf } from '../core/wording.ts';
import type { Ledger } from '../engine/ledger.ts';
import { withLedger } from './data-directory.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson, say } from './output.ts';
import { readOperations } from './recorded.ts';

export interface FindOptions {
  readonly data?: string;
  readonly json?: boolean;
}

interface Match {
  readonly operation: Operation;
  readonly by: FoundBy;
}

/** Content lies apart from the operations, and is looked through only when no name fits. */
const CONTENT_MAX = 2_000;
const SHOWN_MAX = 50;
const WORDS_MAX = 2_048;

export async function find(words: string, options: FindOptions): Promise<number> {
  if (words.trim() === '' || words.length > WORDS_MAX) {
    throw new CommandFault(EXIT.usage, `What to find must have 1 to ${WORDS_MAX} characters.`);
  }
  return withLedger(options.data, async (ledger) => {
    const { operations } = await readOperations(ledger);
    const named = operations.flatMap((operation): Match[] => {
      const by = foundBy(operation, words);
      return by === undefined ? [] : [{ operation, by }];
    });
    const matches = named.length > 0 ? named : await inContent(ledger, operations, words);
    if (matches.length === 0) {
      throw new CommandFault(
        EXIT.notFound,
        `Nothing recorded here is known as ${printable(JSON.stringify(words))}: it never reached this ledger, or goes by another name.`,
      );
    }
    if (options.json === true) printJson({ query: words, matches: matches.map(asJson) });
    else for (const match of matches.slice(0, SHOWN_MAX)) for (const line of matchLines(match)) print(line);
    const more = matches.length - SHOWN_MAX;
    if (options.json !== true && more > 0) say(`counterfoil: ${more} more; show them with --json`);
    return EXIT.done;
  });
}

async function inContent(
  ledger: Ledger,
  operations: readonly Operation[],
  words: string,
): Promise<readonly Match[]> {
  if (operations.length > CONTENT_MAX) {
    say(
      `counterfoil: What was sent and answered was looked through for the ${CONTENT_MAX} newest operations only.`,
    );
  }
  const matches: Match[] = [];
  for (const operation of operations.slice(0, CONTENT_MAX)) {
    const { payload, reply } = await ledger.readings.reading(operation);
    const by = foundInContent(words, {
      target: payload.target?.ids ?? [],
      texts: [payload.text, ...(reply === undefined ? [] : [reply.body])],
    });
    if (by !== undefined) matches.push({ operation, by });
  }
  return matches;
}

function asJson({ by, operation }: Match): object {
  return {
    operation: operation.id,
    foundBy: by,
    destination: operation.destination,
    tool: operation.tool,
    run: operation.run.id,
    stage: operation.stage,
    effect: operation.effect,
    label: labelOf(operation),
    record: operation.record ?? null,
    proposedAt: operation.proposedAt,
  };
}

const BY_WORDS: { readonly [by in FoundBy]: string } = {
  operation: 'its id',
  run: 'its run',
  review: 'its review',
  attempt: 'one of its attempts',
  record: "the destination's record",
  call: 'the call or position that asked for it',
  reference: 'a thread or trace that it belongs to',
  digest: 'its digest',
  target: 'its target',
  content: 'what was sent or answered',
};

function matchLines({ by, operation }: Match): readonly string[] {
  const record = operation.record?.id === undefined ? '' : `, record ${printable(operation.record.id)}`;
  return [
    `${operation.id}  ${labelOf(operation)}  (found by ${BY_WORDS[by]})`,
    `  ${printable(operation.tool)} on ${operation.destination}${record}, run ${printable(operation.run.id)}, ${instant(operation.proposedAt)}`,
    `  ${sentenceOf(operation)}`,
  ];
}
