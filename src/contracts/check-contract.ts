// What a schema cannot say about one contract: facts in it that contradict each other.

import { canonicalJson, type JsonValue } from '../core/canonical.ts';
import type {
  Comparison,
  Contract,
  ContractOperation,
  Lookup,
  ReplyPlace,
  Signal,
} from '../core/contract.ts';
import { keyGuard } from '../core/request-key.ts';
import { templateNames } from '../core/template.ts';
import { checkFacts } from './check-facts.ts';
import { checkHttpOperation } from './check-http.ts';
import type { Finding, Path } from './problem.ts';
import { identityFindings } from './write-facts.ts';

export function checkContract(contract: Contract): readonly Finding[] {
  return [
    ...checkOwnership(contract),
    ...checkOperationIds(contract),
    ...contract.operations.flatMap((operation, index) => [
      ...checkOperation(operation, ['operations', index]),
      ...checkFacts(operation, contract, ['operations', index]),
      ...checkHttpOperation(operation, contract.destination.protocol, ['operations', index]),
    ]),
  ];
}

/** A contract past its review still allows look-ups, so that it is told and not refused (D7). */
export function reviewNotes(contract: Contract, today: string): readonly Finding[] {
  const { review_by: reviewBy } = contract.ownership;
  if (reviewBy >= today) return [];
  const sentence = `${contract.id} was to be reviewed by ${reviewBy}; until it is, nothing is repeated on its word, and look-ups go on.`;
  return [{ path: ['ownership', 'review_by'], sentence, severity: 'note' }];
}

function checkOwnership({ ownership }: Contract): readonly Finding[] {
  if (ownership.review_by >= ownership.reviewed_on) return [];
  return [
    {
      path: ['ownership', 'review_by'],
      sentence: `review_by is ${ownership.review_by}, before the day of the last review, ${ownership.reviewed_on}.`,
    },
  ];
}

function checkOperationIds({ operations }: Contract): readonly Finding[] {
  return operations.flatMap(({ id }, index) => {
    const first = operations.findIndex((other) => other.id === id);
    if (first === index) return [];
    return [
      {
        path: ['operations', index, 'id'],
        sentence: `operations[${index}] and operations[${first}] are both called ${id}; each needs a name of its own.`,
      },
    ];
  });
}

function checkOperation(operation: ContractOperation, path: Path): readonly Finding[] {
  const { id, identity, target, stamp } = operation;
  const places = { path: [...path, 'identity'], targetPath: [...path, 'target'] };
  return [
    ...identityFindings({ identity, target, stamp: stamp?.argument, name: id, ...places }),
    ...operation.lookups.flatMap((lookup, index) =>
      checkLookup(operation, lookup, [...path, 'lookups', index]),
    ),
    ...checkReadBack(operation, [...path, 'readback']),
    ...checkOutcomes(operation, [...path, 'outcomes']),
    ...checkReversals(operation, [...path, 'reversals']),
    ...checkPlaces(operation, path),
  ];
}

function checkLookup(operation: ContractOperation, lookup: Lookup, path: Path): readonly Finding[] {
  const { found, proves, consistency, http } = lookup;
  const tool = lookup.tool?.arguments ?? http;
  const asked = [tool, found?.where, found?.content];
  const findings = [...checkNames(operation, asked, path, 'look-up', false)];
  const say = (at: Path, sentence: string) => findings.push({ path: [...path, ...at], sentence });
  if (tool !== undefined && proves.present === 'applied_if_content_matches' && found?.content === undefined) {
    say(
      ['proves', 'present'],
      `A look-up of ${operation.id} proves something only if the content matches, and found.content names nothing to compare.`,
    );
  }
  // What is asked for by our own reference is ours.
  const isAskedByOurs = templateNames(tool).some((name) => name === '$stamp' || name === '$key');
  const isAnyRecord = !isAskedByOurs && found !== undefined && (found.where ?? []).length === 0;
  if (tool !== undefined && proves.present === 'applied' && isAnyRecord && operation.effect in CHANGES) {
    say(
      ['found'],
      `A look-up of ${operation.id} takes any record that it finds for proof, and the write ${CHANGES[operation.effect]}: found.where has to say what shows that it was done.`,
    );
  }
  if (proves.absent === 'not_applied' && consistency.kind !== 'read_after_write') {
    say(
      ['proves', 'absent'],
      `A look-up of ${operation.id} takes an absence for proof at once, and its consistency is ${consistency.kind}; that needs read_after_write.`,
    );
  }
  if (proves.absent === 'not_applied_after_settle' && consistency.settle === undefined) {
    say(
      ['proves', 'absent'],
      `A look-up of ${operation.id} takes an absence for proof after the settle time, and consistency.settle is missing.`,
    );
  }
  if (lookup.absent_when !== undefined && isTextAlone(lookup.absent_when)) {
    say(['absent_when'], textAlone(`The absence that a look-up of ${operation.id} reads`));
  }
  return findings;
}

/** A record that was there before shows nothing of these. */
const CHANGES: { readonly [effect in ContractOperation['effect']]?: string } = {
  update: 'changes a record that is there',
  replace: 'changes a record that is there',
  delete: 'removes one',
};

function checkReadBack(operation: ContractOperation, path: Path): readonly Finding[] {
  const { readback } = operation;
  if (readback === undefined) return [];
  const asked = readback.http ?? readback.tool?.arguments;
  return checkNames(operation, [asked, readback.matches], path, 'read-back', true);
}

const KNOWN_AFTER_SENDING: readonly string[] = ['$stamp', '$key', '$record', '$record_number'];

/** What a template may speak of, given what the operation says that we will know. */
function checkNames(
  operation: ContractOperation,
  templates: readonly unknown[],
  path: Path,
  what: string,
  isAfterLookup: boolean,
): Finding[] {
  const { id, stamp, acknowledgement, lookups } = operation;
  const knowsRecord =
    acknowledgement?.record !== undefined ||
    (operation.completion.http !== undefined && operation.completion.handle !== undefined) ||
    (isAfterLookup && lookups.some((lookup) => lookup.found?.record !== undefined));
  return templateNames(templates).flatMap((name) => {
    if (name === '$stamp' && stamp === undefined) {
      return { path, sentence: `A ${what} of ${id} uses {$stamp}, and the operation has no stamp.` };
    }
    if (name === '$key' && keyGuard(operation) === undefined) {
      return {
        path,
        sentence: `A ${what} of ${id} uses {$key}, and no guard of it is a request_key or a client_identity.`,
      };
    }
    if ((name === '$record' || name === '$record_number') && !knowsRecord) {
      return {
        path,
        sentence: `A ${what} of ${id} uses {${name}}, and acknowledgement.record does not say where one is found.`,
      };
    }
    if (name.startsWith('$') && !KNOWN_AFTER_SENDING.includes(name)) {
      return {
        path,
        sentence: `A ${what} of ${id} uses {${name}}; allowed are arguments of the call, {$stamp}, {$key}, {$record} and {$record_number}.`,
      };
    }
    return [];
  });
}

function checkOutcomes({ id, outcomes }: ContractOperation, path: Path): readonly Finding[] {
  return outcomes.flatMap((outcome, index) => {
    const findings: Finding[] = [];
    const isRefusal = outcome.means === 'not_applied' || outcome.means === 'not_applied_temporary';
    if (isRefusal && isTextAlone(outcome.when)) {
      findings.push({ path: [...path, index, 'when'], sentence: textAlone(`A refusal of ${id}`) });
    }
    const marks = canonicalJson(outcome.when as JsonValue);
    const first = outcomes.findIndex((other) => canonicalJson(other.when as JsonValue) === marks);
    if (first < index) {
      findings.push({
        path: [...path, index],
        sentence: `outcomes[${index}] of ${id} means ${outcome.means} and never counts, because outcomes[${first}] has the same marks and means ${outcomes[first]?.means}.`,
      });
    }
    return findings;
  });
}

/** A result often repeats what it was given, so that text alone could make a refusal of a success. */
function isTextAlone(signal: Signal): boolean {
  const isText = signal.text_starts !== undefined || signal.text_contains !== undefined;
  return isText && signal.kind === undefined && signal.status === undefined && signal.code === undefined;
}

function textAlone(what: string): string {
  return `${what} is known by its text alone, which a success may contain as well; name its kind, status or code beside it.`;
}

function checkReversals({ id, reversals }: ContractOperation, path: Path): readonly Finding[] {
  const none = reversals.findIndex(({ kind }) => kind === 'none');
  const other = reversals.find(({ kind }) => kind !== 'none');
  if (none < 0 || other === undefined) return [];
  return [
    {
      path: [...path, none],
      sentence: `${id} has the reversal none, and the reversal ${other.kind} beside it.`,
    },
  ];
}

/** A path leads into JSON, and a text has no inside. */
function checkPlaces(operation: ContractOperation, path: Path): readonly Finding[] {
  const places: [ReplyPlace | Comparison | undefined, Path][] = [
    [operation.acknowledgement?.record, ['acknowledgement', 'record']],
    [operation.acknowledgement?.version, ['acknowledgement', 'version']],
    [operation.readback?.version, ['readback', 'version']],
    ...within(operation.readback?.matches, ['readback', 'matches']),
    ...operation.lookups.flatMap(({ found }, index): [ReplyPlace | Comparison | undefined, Path][] => {
      const at = ['lookups', index, 'found'];
      return [
        [found?.items, [...at, 'items']],
        ...within(found?.where, [...at, 'where']),
        ...within(found?.content, [...at, 'content']),
      ];
    }),
  ];
  return places.flatMap(([place, at]) => {
    if (place?.from !== 'text' || (place.path ?? '') === '') return [];
    const sentence = `A place of ${operation.id} is in the text, which has no path ${place.path}; json reads the text as JSON.`;
    return [{ path: [...path, ...at, 'path'], sentence }];
  });
}

function within(comparisons: readonly Comparison[] | undefined, path: Path): [Comparison, Path][] {
  return (comparisons ?? []).map((comparison, index) => [comparison, [...path, index]]);
}
