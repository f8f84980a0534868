// The tools of a setup that write, each with the write of a contract that it is.

import type { Contract, ContractOperation } from '../core/contract.ts';
import type { Binding } from './binding.ts';
import { declarationOf, type GatewayConfig } from './gateway-config.ts';
import { splitName } from './write-facts.ts';

interface Read<Value> {
  readonly value: Value;
}

/** Files that were read together; where each came from is of no matter here. */
export interface ReadTogether {
  readonly contracts: readonly Read<Contract>[];
  readonly bindings: readonly Read<Binding>[];
  readonly config?: Read<GatewayConfig> | undefined;
}

export interface BoundTool {
  readonly tool: string;
  /** Absent where no contract describes it. */
  readonly contract?: Contract;
  readonly operation?: ContractOperation;
}

/** Each tool once, in the order of the configuration and then of its bindings; what is declared a read is left out. */
export function boundTools(
  { bindings, config, contracts: loaded }: ReadTogether,
  more: readonly Contract[] = [],
): readonly BoundTool[] {
  const contracts = [...loaded.map(({ value }) => value), ...more];
  const tools = new Map<string, BoundTool>();
  for (const tool of Object.keys(config?.value.tools ?? {})) {
    const declaration = declarationOf(config?.value, tool);
    if (declaration?.class === 'read') continue;
    const named = declaration?.contract_operation;
    tools.set(tool, { tool, ...(named === undefined ? {} : operationOf(contracts, ...splitName(named))) });
  }
  for (const { value } of bindings) {
    for (const row of value.tools) {
      const isRead = row.class === 'read' || declarationOf(config?.value, row.tool)?.class === 'read';
      const known = tools.get(row.tool);
      if (isRead || known?.operation !== undefined) continue;
      const bound = row.operation === undefined ? {} : operationOf(contracts, value.contract, row.operation);
      tools.set(row.tool, { tool: row.tool, ...bound });
    }
  }
  return [...tools.values()];
}

function operationOf(
  contracts: readonly Contract[],
  contractId: string,
  operationId: string,
): Pick<BoundTool, 'contract' | 'operation'> {
  const contract = contracts.find(({ id }) => id === contractId);
  const operation = contract?.operations.find(({ id }) => id === operationId);
  return contract === undefined || operation === undefined ? {} : { contract, operation };
}
