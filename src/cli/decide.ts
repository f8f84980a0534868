// `counterfoil approve` and `deny`: the local owner's decisions, on exactly the digest that was shown.

import type { Operation } from '../core/operation.ts';
import { labelOf, sentenceOf } from '../core/wording.ts';
import type { DecisionResult, Ledger, OwnerRule, ReviewDecision } from '../engine/ledger.ts';
import { localAccount } from './account.ts';
import { dataDirectory, withLedger } from './data-directory.ts';
import { instant, payloadLines, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { askPassphrase, knownOwner } from './passphrase.ts';
import { toType } from './starter.ts';

export interface DecideOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly digest: string;
  readonly by?: string;
  readonly reason?: string;
  readonly class?: OwnerRule['class'];
}

const NAME_MAX = 128;

export async function decideReview(
  id: string,
  kind: 'approved' | 'denied',
  options: DecideOptions,
): Promise<number> {
  if (!/^[0-9a-f]{12,64}$/.test(options.digest)) {
    throw new CommandFault(
      EXIT.usage,
      `--digest wants at least the first 12 digits of the digest that was shown (0-9, a-f), and was given ${printable(JSON.stringify(options.digest))}.`,
    );
  }
  const by = options.by ?? localAccount();
  checkPersonName(by);
  return withLedger(options.data, async (ledger) => {
    // A passphrase takes its time: what is asked by then may be another question.
    const review = (await ledger.readings.record(id))?.operation.review?.id;
    const asked: ReviewDecision = {
      operation: id,
      ...(review === undefined ? {} : { review }),
      digest: options.digest,
      kind,
      by,
      strength: 'same_account',
      ...(options.reason === undefined ? {} : { comment: options.reason }),
      ...(options.class === undefined ? {} : { toolClass: options.class }),
    };
    const result = await ledger.decideReview(await asStrongAsNeeded(ledger, asked, options));
    if (!result.decided) throw refusal(id, result);
    const { operation, rule } = result;
    const decision = operation.review?.decision;
    if (options.json === true) {
      printJson({
        operation: operation.id,
        decision,
        stage: operation.stage,
        effect: operation.effect,
        rule: rule ?? null,
      });
      return EXIT.done;
    }
    print(`${operation.id}  ${kind} by ${printable(decision?.by ?? '')} at ${instant(decision?.at ?? 0)}`);
    print(`Strength: ${STRENGTHS[decision?.strength ?? 'same_account']}`);
    if (kind === 'approved') {
      print(await sendingLine(ledger, operation));
    } else {
      print(`${labelOf(operation)}. ${sentenceOf(operation)}`);
    }
    if (rule !== undefined) {
      print(
        `Rule: ${printable(rule.tool)} on ${rule.destination} is ${rule.class} from now on, as long as its name, schema and annotations stay as they are. To revoke: ${toType(`policy revoke ${rule.destination}/${printable(rule.tool)}`)}`,
      );
    }
    return EXIT.done;
  });
}

/** @throws {CommandFault} where it could be taken for something else when it is shown */
export function checkPersonName(name: string): void {
  if (name.length <= NAME_MAX && printable(name) === name) return;
  throw new CommandFault(
    EXIT.usage,
    `--by wants a name of at most ${NAME_MAX} characters without control characters.`,
  );
}

export const STRENGTHS = {
  same_account:
    'same_account — this proves only that somebody at this account decided, which may be the agent itself.',
  passphrase: "passphrase — the owner's passphrase was typed on a terminal.",
  sso: 'sso — the identity provider vouches for who decided.',
} as const;

/**
 * Refusing needs nothing. Approving needs the passphrase where one is set, and for what cannot be taken back always;
 * what would be refused anyway is refused before anybody is asked.
 */
async function asStrongAsNeeded(
  ledger: Ledger,
  decision: ReviewDecision,
  options: DecideOptions,
): Promise<ReviewDecision> {
  if (decision.kind === 'denied') return decision;
  const strong: ReviewDecision = { ...decision, strength: 'passphrase' };
  const refused = await ledger.refusalOf(strong);
  if (refused !== undefined) throw refusal(decision.operation, refused);
  const isSet = (await knownOwner(ledger, dataDirectory(options.data))) !== undefined;
  const refusedWithout = await ledger.refusalOf(decision);
  if (!isSet) {
    if (refusedWithout !== undefined) throw refusal(decision.operation, refusedWithout);
    return decision;
  }
  await askPassphrase(ledger, options.data, 'An approval', await approvalLines(ledger, decision));
  return strong;
}

/** What the person sees on the terminal before the passphrase is typed: exactly what is sent. */
export async function approvalLines(
  ledger: Ledger,
  { operation: id, toolClass }: Pick<ReviewDecision, 'operation' | 'toolClass'>,
): Promise<readonly string[]> {
  const reading = await ledger.readings.operation(id);
  if (reading === undefined) return [];
  const { looked, operation, payload, target } = reading;
  const isAgain = operation.orderedBy !== undefined;
  return [
    `To be approved: ${operation.id}, ${printable(operation.tool)} on ${operation.destination}${target === undefined ? '' : `, ${printable(target)}`}`,
    ...payloadLines(payload.text),
    `    digest ${operation.digest}`,
    ...(isAgain ? [sentenceOf(operation)] : []),
    ...(isAgain && looked !== undefined ? [`    looked at ${printable(JSON.stringify(looked))}`] : []),
    ...(toolClass === undefined ? [] : [`and ${printable(operation.tool)} is ${toolClass} from then on`]),
  ];
}

function refusal(id: string, result: Extract<DecisionResult, { decided: false }>): CommandFault {
  const shown = printable(id);
  switch (result.refusal) {
    case 'not_found':
      return new CommandFault(
        EXIT.notFound,
        `No operation ${shown} is recorded here, so there is nothing to decide.`,
      );
    case 'digest_differs':
    case 'digest_too_short':
      return new CommandFault(
        EXIT.conflict,
        `Nothing was decided: the digest given is not that of ${shown}. Look at it again (${toType(`show ${shown}`)}) and decide on what it is now.`,
      );
    case 'changed':
      return new CommandFault(
        EXIT.conflict,
        `Nothing was decided: ${shown} is asked about anew since it was shown. Look at it again (${toType(`show ${shown}`)}) and decide on what is asked now.`,
      );
    case 'already_decided': {
      const decision = result.operation?.review?.decision;
      return new CommandFault(
        EXIT.conflict,
        `Nothing was changed: ${shown} was ${decision?.kind ?? 'decided'} by ${printable(decision?.by ?? 'somebody')} at ${instant(decision?.at ?? 0)}. The first decision stands.`,
      );
    }
    case 'class_not_asked':
      return new CommandFault(
        EXIT.usage,
        `Nothing was decided: --class answers what an unclassified tool is, and that is not asked about ${shown}. Leave it out.`,
      );
    case 'strength_too_low':
      return new CommandFault(
        EXIT.notAllowed,
        `Nothing was decided: what cannot be taken back needs more than this account (same_account), which may be the agent's own. Set a passphrase in a terminal (${toType('passphrase set')}), then approve ${shown} again.`,
      );
    case 'review_expired':
      return new CommandFault(
        EXIT.conflict,
        `Nothing was decided: the review of ${shown} has ended. Its caller may ask again.`,
      );
    default:
      return new CommandFault(
        EXIT.conflict,
        `Nothing was decided: nobody is being asked about ${shown} now. ${result.operation === undefined ? '' : `It is: ${labelOf(result.operation)}.`}`,
      );
  }
}

async function sendingLine(ledger: Ledger, operation: Operation): Promise<string> {
  const { destination, id, review } = operation;
  const now = await ledger.readings.asItWaits(operation);
  if (now.why?.code !== 'waits_for_gateway')
    return `It is sent by the running gateway to ${destination}. See: ${toType(`show ${id}`)}`;
  const until = review === undefined ? '' : `, until ${instant(review.expiresAt)}`;
  return `No gateway to ${destination} runs now: it waits for one, and is sent when one starts${until}. See: ${toType(`show ${id}`)}`;
}
