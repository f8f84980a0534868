// The algorithm's answer for each write of the shipped contracts in each situation, as data: the document is made of it.

import type { Contract, ContractOperation } from '../core/contract.ts';
import { readShipped, shippedFiles } from './catalogue.ts';
import { loadContract } from './load.ts';
import { type Answer, answersFor } from './situations.ts';

export { SITUATIONS } from './situations.ts';

export interface AnswerRow {
  readonly contract: Contract;
  readonly operation: ContractOperation;
  readonly answers: readonly Answer[];
}

/** In the order of the files. @throws where a shipped file is not right, which its tests would have shown */
export function shippedAnswers(): readonly AnswerRow[] {
  return shippedFiles('contract').flatMap((file) => {
    const loaded = loadContract(readShipped(file), file);
    if (!loaded.ok) throw new Error(`Assertion: the shipped file ${file} is right.`);
    const { contract } = loaded;
    return contract.operations.map((operation) => ({
      contract,
      operation,
      answers: answersFor(contract, operation),
    }));
  });
}
