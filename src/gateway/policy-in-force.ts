// Which of two configurations counts when a gateway starts: the one in the files, or, where that one loosens anything
// and nobody has confirmed it, the one that was in force before.

import { type GatewaySetup, loadGatewaySetup } from '../contracts/load.ts';
import { loosenedBy } from '../contracts/policy-change.ts';
import { formatProblem } from '../contracts/problem.ts';
import { canonicalJson, type JsonValue } from '../core/canonical.ts';
import { sha256Hex } from '../core/digest.ts';
import type { Policies, PolicySources } from '../engine/policies.ts';

export type SetupInForce =
  | {
      readonly ok: true;
      readonly setup: GatewaySetup;
      readonly loosens: readonly string[];
      readonly digest: string;
      /** Since when it has been in force, in milliseconds since 1970. */
      readonly since: number;
    }
  | { readonly ok: false; readonly problem: string };

/**
 * @param given the files' configuration, loaded and checked, with the texts that it was loaded from
 * @throws {StoreFault}
 */
export async function setupInForce(
  policies: Policies,
  given: { readonly setup: GatewaySetup; readonly sources: PolicySources; readonly by: string },
): Promise<SetupInForce> {
  const { by, setup, sources } = given;
  const destination = setup.config.value.destination;
  const digest = sha256Hex(canonicalJson(sources as unknown as JsonValue));
  const state = await policies.adopt({
    destination,
    digest,
    sources,
    by,
    loosens: (inForce) => {
      const earlier = setupOf(inForce);
      // What cannot be compared may be anything.
      return earlier.ok
        ? loosenedBy(setup, earlier)
        : ['The configuration in force cannot be read any more.'];
    },
  });
  const since = state.inForce.at;
  if (state.waiting === undefined) return { ok: true, setup, loosens: [], digest, since };
  const earlier = setupOf(state.inForce.sources);
  const { digest: waiting, loosens } = state.waiting;
  if (earlier.ok) return { ok: true, setup: earlier, loosens, digest: waiting, since };
  const problems = earlier.problems.map(formatProblem).join('; ');
  return {
    ok: false,
    problem: `The configuration of ${destination} that is in force cannot be read: ${problems}`,
  };
}

/** The configuration that was kept, loaded from its texts. */
export function setupOf({ files, text }: PolicySources): ReturnType<typeof loadGatewaySetup> {
  return loadGatewaySetup(text, 'the configuration in force', {
    readText: (name) => {
      const file = Object.hasOwn(files, name) ? files[name] : undefined;
      return file === undefined ? { reason: 'it was not kept' } : { text: file };
    },
  });
}
