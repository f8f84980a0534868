// `counterfoil revoke`: an approval is taken back. Nothing more is sent under it; what has left is not recalled, and the
// answer says so.

import { attemptsOfRound, type Operation } from '../core/operation.ts';
import { labelOf, sentenceOf } from '../core/wording.ts';
import type { RevokeResult } from '../engine/revocations.ts';
import { localAccount } from './account.ts';
import { withLedger } from './data-directory.ts';
import { checkDigest, checkPersonName, STRENGTHS } from './decide.ts';
import { instant, printable } from './lines.ts';
import { CommandFault, EXIT, print, printJson } from './output.ts';
import { decisionCommand } from './show.ts';
import { toType } from './starter.ts';

export interface RevokeOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly digest: string;
  readonly by?: string;
  readonly reason?: string;
}

export async function revokeApproval(id: string, options: RevokeOptions): Promise<number> {
  checkDigest(options.digest);
  const by = options.by ?? localAccount();
  checkPersonName(by);
  return withLedger(options.data, async (ledger) => {
    const result = await ledger.revocations.revoke({
      operation: id,
      digest: options.digest,
      by,
      strength: 'same_account',
      ...(options.reason === undefined ? {} : { comment: options.reason }),
    });
    if (!result.revoked) throw refusal(id, result);
    const { isRepeat, operation, revocation } = result;
    const { effect, stage } = operation;
    if (options.json === true) {
      printJson({
        operation: operation.id,
        revoked: revocation,
        repeat: isRepeat,
        stage,
        effect,
        left: hasLeft(operation),
        sentence: leftSentence(operation),
      });
      return EXIT.done;
    }
    const before = isRepeat ? 'was revoked before, ' : 'approval revoked ';
    print(`${operation.id}  ${before}by ${printable(revocation.by)} at ${instant(revocation.at)}`);
    print(`Strength: ${STRENGTHS[revocation.strength]}`);
    print(leftSentence(operation));
    if (stage === 'awaiting_approval')
      print(`A person is asked anew. To decide: ${toType(decisionCommand(operation))}`);
    else print(`${labelOf(operation)}. ${sentenceOf(operation)}`);
    return EXIT.done;
  });
}

/** Whether anything was handed over in this round, as far as is known. */
function hasLeft(operation: Operation): boolean {
  return operation.effect !== 'not_sent' && attemptsOfRound(operation).length > 0;
}

function leftSentence(operation: Operation): string {
  if (!hasLeft(operation)) return 'Nothing has left under it, and nothing will.';
  return 'What had left is not recalled: nothing was taken back at the destination. No later attempt starts.';
}

function refusal(id: string, result: Extract<RevokeResult, { revoked: false }>): CommandFault {
  const shown = printable(id);
  const { operation } = result;
  switch (result.refusal) {
    case 'not_found':
      return new CommandFault(
        EXIT.notFound,
        `No operation ${shown} is recorded here, so there is nothing to revoke.`,
      );
    case 'digest_differs':
    case 'digest_too_short':
      return new CommandFault(
        EXIT.conflict,
        `Nothing was revoked: the digest given is not that of ${shown}. Look at it again (${toType(`show ${shown}`)}).`,
      );
    case 'not_at_this_stage': {
      const known = operation === undefined ? '' : ` ${labelOf(operation)}. ${sentenceOf(operation)}`;
      return new CommandFault(
        EXIT.conflict,
        `Nothing was revoked: ${shown} is closed, so that nothing more is sent under its approval, and what was sent is not recalled.${known}`,
      );
    }
    default:
      return new CommandFault(
        EXIT.conflict,
        `Nothing was revoked: ${shown} has no approval that is in force. ${operation === undefined ? '' : `It is: ${labelOf(operation)}.`}`,
      );
  }
}
