// `counterfoil approve`: one operation by its digest, or the list of a run by the list's.

import { type ApproveRunOptions, approveRun } from './approve-run.ts';
import { type DecideOptions, decideReview } from './decide.ts';
import { CommandFault, EXIT } from './output.ts';

type ApproveOptions = ApproveRunOptions & Omit<DecideOptions, 'digest'> & { readonly run?: string };

export function approve(id: string | undefined, options: ApproveOptions): Promise<number> {
  const { class: toolClass, digest, review, run } = options;
  if (run !== undefined) {
    if (id !== undefined || toolClass !== undefined || review !== undefined)
      throw new CommandFault(
        EXIT.usage,
        '--run stands for its list: name no operation, --review or --class beside it.',
      );
    return approveRun(run, options);
  }
  if (options.dryRun === true)
    throw new CommandFault(EXIT.usage, '--dry-run is for the list of a run: name it with --run.');
  if (id === undefined)
    throw new CommandFault(EXIT.usage, 'Name the operation to approve (op_…), or a run with --run.');
  if (digest === undefined)
    throw new CommandFault(
      EXIT.usage,
      '--digest is missing: the digest that was shown, or at least its first 12 digits.',
    );
  return decideReview(id, 'approved', { ...options, digest });
}
