// A contract whose requests over HTTP are questions and facts of the same kinds as those of any other destination.

import type { JsonObject } from '../core/canonical.ts';
import type {
  Contract,
  ContractOperation,
  HttpQuestion,
  Lookup,
  ReadBack,
  ReplyPlace,
  ToolQuestion,
} from '../core/contract.ts';
import { isTrusted } from '../core/contract.ts';
import { partedTemplate } from '../core/http-request.ts';

export function executable(contract: Contract): Contract {
  return { ...contract, operations: contract.operations.map(executableOperation) };
}

function executableOperation(operation: ContractOperation): ContractOperation {
  const { readback } = operation;
  // What is asked by it is more than a name: while work goes on, the handle is the record.
  const record = handlePlace(operation) ?? operation.acknowledgement?.record;
  return {
    ...operation,
    lookups: [...operation.lookups.map(askedLookup), ...statusLookup(operation)],
    ...(readback === undefined ? {} : { readback: askedReadBack(readback) }),
    ...(record === undefined ? {} : { acknowledgement: { ...operation.acknowledgement, record } }),
  };
}

function askedLookup(lookup: Lookup): Lookup {
  const { found, http, ...rest } = lookup;
  if (http === undefined) return lookup;
  const tool = questionOf(http, found?.items);
  return { ...rest, tool, ...(found === undefined ? {} : { found }) };
}

function askedReadBack({ http, ...rest }: ReadBack): ReadBack {
  return http === undefined ? rest : { ...rest, tool: questionOf(http) };
}

/** The question, parted so that each value is encoded for its own place. */
function questionOf(http: HttpQuestion, items?: ReplyPlace): ToolQuestion {
  const { pages, ...template } = http;
  const paged = pages === undefined ? {} : { pages: { ...pages, items: items?.path ?? '' } as JsonObject };
  const name = `${http.method ?? 'GET'} ${http.path}`;
  return { name, arguments: { ...partedTemplate(template), ...paged } };
}

/** Where a destination goes on working after it has answered, the resource that tells of it is the last look-up. */
function statusLookup({ completion }: ContractOperation): readonly Lookup[] {
  const { done = [], failed = [], http, kind } = completion;
  if (kind !== 'accepted_then_poll' || http === undefined) return [];
  const { evidence, failed_means: failedMeans, record, state, ...question } = http;
  return [
    {
      by: 'operation_handle',
      tool: questionOf(question),
      status: {
        state: { from: 'json', path: state },
        done,
        failed,
        failedMeansNotApplied: failedMeans === 'not_applied' && isTrusted(evidence),
        ...(record === undefined ? {} : { record: { from: 'json', path: record } }),
      },
      consistency: { kind: 'unknown' },
      unique: 'yes',
      proves: { present: 'applied', absent: 'nothing' },
      evidence,
    },
  ];
}

function handlePlace({ completion }: ContractOperation): ReplyPlace | undefined {
  const { in: where, name = '' } = completion.handle ?? { in: 'none' };
  if (completion.http === undefined) return undefined;
  if (where === 'header') return { from: 'headers', path: `/${name.toLowerCase()}` };
  if (where !== 'body') return undefined;
  return { from: 'json', path: name.startsWith('/') ? name : `/${name.replaceAll('.', '/')}` };
}
