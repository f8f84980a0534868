import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { approve } from '../../src/cli/approve.ts';
import { giveGrant, revokeGrant } from '../../src/cli/grant.ts';
import { CommandFault } from '../../src/cli/output.ts';
import { revokeApproval } from '../../src/cli/revoke.ts';
import { composeLedger } from '../../src/compose.ts';
import type { Operation } from '../../src/core/operation.ts';
import { factsOf, operationOf } from '../engine/setup.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const DIGEST = '0123456789ab';

/** The sentence and the code of a command that cannot be carried out. */
async function fault(run: () => Promise<number>): Promise<string> {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    return `done ${await run()}`;
  } catch (cause) {
    if (!(cause instanceof CommandFault)) throw cause;
    return `${cause.exitCode} ${cause.message}`;
  } finally {
    vi.restoreAllMocks();
  }
}

/** A ledger with one write that waits and one that is denied. */
async function ledgerWith(): Promise<{ data: string; waiting: Operation; denied: Operation }> {
  const data = mkdtempSync(join(tmpdir(), 'counterfoil-'));
  folders.push(data);
  const ledger = await composeLedger({
    data,
    factsFor: () => factsOf('destroy', { class: 'irreversible' }),
  });
  const ask = async (vm: string): Promise<Operation> =>
    operationOf(
      await ledger.write({
        destination: 'cab',
        tool: 'destroy',
        arguments: { vm },
        requester: 'agent',
        run: { id: 'r' },
      }),
    );
  const [waiting, denied] = [await ask('a'), await ask('b')];
  const { digest, id } = denied;
  await ledger.decideReview({ operation: id, digest, kind: 'denied', by: 'Luis', strength: 'same_account' });
  await ledger.close();
  return { data, waiting, denied };
}

test('approve, revoke and grant say what they want, in one sentence, before anything is opened', async () => {
  const CASES: readonly (readonly [() => Promise<number>, RegExp])[] = [
    [async () => approve(undefined, {}), /^2 Name the operation to approve \(op_…\), or a run with --run\.$/],
    [async () => approve('op_1', {}), /^2 --digest is missing/],
    [async () => approve('op_1', { run: 'r' }), /^2 --run stands for its list: name no operation/],
    [async () => approve(undefined, { run: 'r', class: 'read' }), /^2 --run stands for its list/],
    [async () => approve('op_1', { dryRun: true, digest: DIGEST }), /^2 --dry-run is for the list of a run/],
    [
      async () => approve(undefined, { run: 'r', digest: 'xyz' }),
      /^2 --digest wants at least the first 12 digits/,
    ],
    [() => revokeApproval('op_1', { digest: 'short' }), /^2 --digest wants at least the first 12 digits/],
    [() => revokeApproval('op_1', { digest: DIGEST, by: 'a\u202eb' }), /^2 --by wants a name/],
    [() => giveGrant('op_1', { digest: 'short', for: '2h' }), /^2 --digest wants at least/],
    [() => giveGrant('op_1', { digest: DIGEST, for: 'soon' }), /^2 --for soon is no time/],
  ];
  for (const [run, sentence] of CASES) expect(await fault(run)).toMatch(sentence);
});

test('what cannot be revoked, listed or granted is told with the reason, and nothing is recorded', async () => {
  const { data, denied, waiting } = await ledgerWith();
  const revoke = (id: string, digest: string) => () => revokeApproval(id, { digest, data });
  const CASES: readonly (readonly [() => Promise<number>, RegExp])[] = [
    [revoke('op_none', DIGEST), /^3 No operation op_none is recorded here, so there is nothing to revoke\.$/],
    [revoke(waiting.id, DIGEST), /^5 Nothing was revoked: the digest given is not that of op_/],
    [
      revoke(waiting.id, waiting.digest),
      /^5 Nothing was revoked: op_\w+ has no approval that is in force\. It is: Waiting for approval\.$/,
    ],
    [
      revoke(denied.id, denied.digest),
      /^5 Nothing was revoked: op_\w+ has no approval that is in force\. It is: Denied by a person\.$/,
    ],
    [
      () => approve(undefined, { run: 'another', data }),
      /^3 Nothing of the run another waits for approval\.$/,
    ],
    [
      () => approve(undefined, { run: 'r', digest: DIGEST, data }),
      /^5 Nothing was decided: no list of the run r with that digest was shown/,
    ],
    [
      () => giveGrant(waiting.id, { digest: waiting.digest, for: '2h', data }),
      /^4 Nothing was granted: op_\w+ is not asked about because every write/,
    ],
    [() => revokeGrant('grant_none', { data }), /^3 There is no grant grant_none to end\./],
    [() => revokeGrant(`grant_${'0'.repeat(16)}`, { data }), /^3 There is no grant grant_0+ to end\./],
    // Shown, the list is kept, and may be decided on: here nobody has more than this account.
    [() => approve(undefined, { run: 'r', data }), /^done 10$/],
  ];
  for (const [run, sentence] of CASES) expect(await fault(run)).toMatch(sentence);
});
