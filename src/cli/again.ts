// `counterfoil again`: a person says that an equal write is really wanted once more. It opens a review; who approves it
// makes the next occurrence.

import { labelOf, sentenceOf } from '../core/wording.ts';
import type { LedgerSettings } from '../engine/context.ts';
import type { Ledger } from '../engine/ledger.ts';
import { setupOf } from '../gateway/policy-in-force.ts';
import { localAccount } from './account.ts';
import { withLedger } from './data-directory.ts';
import { checkPersonName } from './decide.ts';
import { settingsOf } from './gateway-setup.ts';
import { printable } from './lines.ts';
import { CommandFault, EXIT, exitCodeOf, print, printJson } from './output.ts';
import { asJson, queueLines, type ShownReading, shownReading } from './show.ts';
import { toType } from './starter.ts';

export interface AgainOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly reason: string;
  readonly by?: string;
}

/** As for the tool by which a model asks. */
const REASON_MAX = 500;

export async function again(id: string, options: AgainOptions): Promise<number> {
  const reason = options.reason.trim();
  if (reason.length > REASON_MAX) {
    throw new CommandFault(
      EXIT.usage,
      `--reason wants at most ${REASON_MAX} characters, which whoever decides will read.`,
    );
  }
  const person = options.by ?? localAccount();
  checkPersonName(person);
  const settings = await withLedger(options.data, (ledger) => settingsFor(ledger, id));
  return withLedger(
    options.data,
    async (ledger) => {
      const asked = await ledger.again({ operation: id, reason, person });
      if (typeof asked === 'string') throw refusal(id, asked);
      const first = await readingOf(ledger, id);
      const { opened } = asked;
      const about = await shownReading(ledger, opened ? asked.operation : asked.stands);
      if (options.json === true) {
        printJson({ opened, ...asJson(about, []), history: undefined, first: firstJson(first) });
      } else for (const line of opened ? openedLines(about, first) : standingLines(about)) print(line);
      return exitCodeOf(about.operation);
    },
    { settings },
  );
}

/** A review that is opened here lasts as long as one that its gateway opens. */
async function settingsFor(ledger: Ledger, id: string): Promise<Partial<LedgerSettings>> {
  const record = await ledger.readings.record(id);
  const state = record && (await ledger.policies.of(record.operation.destination));
  const inForce = state && setupOf(state.inForce.sources);
  return inForce?.ok === true ? settingsOf(inForce.config.value) : {};
}

async function readingOf(ledger: Ledger, id: string): Promise<ShownReading> {
  const record = await ledger.readings.record(id);
  if (record === undefined) throw new Error(`Assertion: ${id} was there a moment ago.`);
  return shownReading(ledger, record.operation);
}

function refusal(id: string, why: 'not_found' | 'tool_unknown' | 'altered'): CommandFault {
  const shown = printable(id);
  switch (why) {
    case 'not_found':
      return new CommandFault(
        EXIT.notFound,
        `No operation ${shown} is recorded here, so there is nothing to ask for again.`,
      );
    case 'altered':
      return new CommandFault(
        EXIT.conflict,
        `Nothing was asked: what is stored for ${shown} is not what was sent then. See: ${toType(`show ${shown}`)}`,
      );
    case 'tool_unknown':
      return new CommandFault(
        EXIT.conflict,
        `Nothing was asked: what ${shown} would send cannot be made here. Its request is made by the contract of its destination, which only a process that holds it has.`,
      );
  }
}

function firstJson({ operation }: ShownReading): object {
  const { effect, id, record, stage } = operation;
  return { operation: id, stage, effect, label: labelOf(operation), record: record ?? null };
}

function openedLines(review: ShownReading, first: ShownReading): readonly string[] {
  return [
    `The first one  ${first.operation.id}  ${labelOf(first.operation)}`,
    `  ${sentenceOf(first.operation)}`,
    ...(first.operation.record?.id === undefined ? [] : [`  record ${printable(first.operation.record.id)}`]),
    'The second one, which nobody sends before it is approved',
    ...queueLines(review).map((line) => `  ${line}`),
  ];
}

/** Of an intent that is open, or was not done, there is no second one. */
function standingLines(stands: ShownReading): readonly string[] {
  const { id, review, stage } = stands.operation;
  const isAsked = stage === 'awaiting_approval' && review?.question === 'again';
  return [
    `${id}  ${labelOf(stands.operation)}`,
    isAsked ? 'It is asked already.' : 'Nothing was asked: a second one is asked for when this one is done.',
    ...queueLines(stands).slice(1),
  ];
}
