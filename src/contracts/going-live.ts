// What people have to agree on before a tool goes live: who owns its outcomes, who may stop it, and which way back is
// taken in each situation; or who has waived that, by name (D11).

import type { Contract } from '../core/contract.ts';
import { isNobody, type Lint, type LintCode } from './contract-lints.ts';
import { declarationOf, type GatewayConfig, type RecoveryRoute } from './gateway-config.ts';

export interface Agreement {
  readonly owner?: string;
  readonly recovery: RecoveryRoute;
  readonly mayStop: readonly string[];
}

export const ROUTES: { readonly [situation in keyof Required<RecoveryRoute>]: string } = {
  nobody_acted: 'nobody has acted on it',
  somebody_acted: 'somebody has acted on it',
  unknown: 'its outcome is unknown',
};

/** What holds for a tool: its own words before those of the whole configuration, and last the contract's owner. */
export function agreementFor(
  config: GatewayConfig | undefined,
  tool: string,
  contract: Contract | undefined,
): Agreement {
  const own = declarationOf(config, tool);
  const owner = [own?.owner, config?.owner, contract?.ownership.owner].find((name) => !isNobody(name));
  return {
    ...(owner === undefined ? {} : { owner }),
    recovery: { ...config?.recovery, ...own?.recovery },
    mayStop: own?.may_stop ?? config?.may_stop ?? [],
  };
}

/** A named person's word that something may be missing. */
export function waiverFor(config: GatewayConfig | undefined, code: LintCode, tool: string) {
  return config?.waivers?.find(
    (waiver) => waiver.what === code && (waiver.tool === undefined || waiver.tool === tool),
  );
}

/** What is missing for one tool, whoever has waived it. */
export function lintAgreement(
  config: GatewayConfig,
  tool: string,
  contract: Contract | undefined,
): readonly Lint[] {
  const { owner, recovery } = agreementFor(config, tool, contract);
  const path = declarationOf(config, tool) === undefined ? [] : ['tools', tool];
  const lints: Lint[] = [];
  if (owner === undefined) {
    lints.push({
      code: 'owner_missing',
      path,
      sentence: `${tool} has no owner, neither here nor in its contract: nobody decides when an outcome stays open. Name one, or waive owner_missing by name.`,
    });
  }
  for (const [situation, words] of Object.entries(ROUTES) as [keyof RecoveryRoute, string][]) {
    if (recovery[situation] !== undefined) continue;
    lints.push({
      code: 'route_missing',
      path,
      sentence: `For ${tool} no way back is agreed where ${words} (recovery.${situation}). Agree on one, or waive route_missing by name.`,
    });
  }
  return lints;
}
