// Whether a configuration loosens the one before it: mode, classes, repeats, targets, identities and bounds, each as
// it follows from the files together.

import { isLooserClass } from '../core/authority.ts';
import { durationMs, type Mode, type RepeatClass, type ToolFacts } from '../core/contract.ts';
import type { Setup } from './check-together.ts';
import { compileToolFacts } from './compile.ts';
import { WRITES_PER_HOUR_DEFAULT } from './gateway-config.ts';
import { listed } from './problem.ts';

const MODE_CARE: { readonly [mode in Mode]: number } = { observe: 0, guard: 1, strict: 2 };
const REPEAT_CARE: { readonly [repeat in RepeatClass]: number } = { free: 0, state: 1, unique: 2 };
const APPROVAL_LIFETIME_DEFAULT = 'PT8H';

/** One sentence for each thing that `next` loosens; none where it is as careful as `before` in everything. */
export function loosenedBy(next: Setup, before: Setup): readonly string[] {
  return [...looserMode(next, before), ...looserBounds(next, before), ...looserTools(next, before)];
}

function looserMode(next: Setup, before: Setup): readonly string[] {
  const [mode, earlier] = [next, before].map(({ config }) => config?.value.mode ?? 'guard') as [Mode, Mode];
  return MODE_CARE[mode] < MODE_CARE[earlier] ? [`The mode is ${mode}, and was ${earlier}.`] : [];
}

function looserBounds(next: Setup, before: Setup): readonly string[] {
  const [one, other] = [next, before].map(({ config }) => config?.value.limits ?? {});
  const sentences: string[] = [];
  const writes = one?.writes_per_hour ?? WRITES_PER_HOUR_DEFAULT;
  const writesBefore = other?.writes_per_hour ?? WRITES_PER_HOUR_DEFAULT;
  if (writes > writesBefore) {
    sentences.push(`limits.writes_per_hour is ${writes}, and was ${writesBefore}.`);
  }
  const lifetime = one?.approval_lifetime ?? APPROVAL_LIFETIME_DEFAULT;
  const lifetimeBefore = other?.approval_lifetime ?? APPROVAL_LIFETIME_DEFAULT;
  if ((durationMs(lifetime) ?? 0) > (durationMs(lifetimeBefore) ?? 0)) {
    sentences.push(`limits.approval_lifetime is ${lifetime}, and was ${lifetimeBefore}.`);
  }
  return sentences;
}

function looserTools(next: Setup, before: Setup): readonly string[] {
  const [facts, earlier] = [factsByCall(next), factsByCall(before)];
  return [...new Set([...earlier.keys(), ...facts.keys()])].flatMap((call) =>
    looserTool(call, facts.get(call), earlier.get(call)),
  );
}

function looserTool(
  call: string,
  next: ToolFacts | undefined,
  before: ToolFacts | undefined,
): readonly string[] {
  const [toolClass, classBefore] = [next?.class ?? 'unclassified', before?.class ?? 'unclassified'];
  if (isLooserClass(toolClass, classBefore)) return [`${call} is ${toolClass}, and was ${classBefore}.`];
  if (next === undefined || before === undefined || toolClass === 'irreversible') return [];
  const parts: string[] = [];
  if (REPEAT_CARE[next.repeat] < REPEAT_CARE[before.repeat]) parts.push('repeat');
  if (before.target !== undefined && !isSame(next.target, before.target)) parts.push('target');
  // Which of two identities catches more repeats cannot be told from the files.
  if (!isSame(next.identity, before.identity)) parts.push('identity');
  if (parts.length === 0) return [];
  return [`${call}: ${listed(parts)} ${parts.length > 1 ? 'are' : 'is'} not as before.`];
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
}

/** What the files say of each tool that they name, rows with conditions by themselves; what a server says is left out. */
function factsByCall({ bindings, config, contracts }: Setup): ReadonlyMap<string, ToolFacts> {
  const facts = new Map<string, ToolFacts>();
  const values = contracts.map(({ value }) => value);
  const add = (tool: string, when: object | undefined, index: number | undefined): void => {
    const call = when === undefined ? tool : `${tool} ${JSON.stringify(when)}`;
    facts.set(
      call,
      compileToolFacts({
        destination: config?.value.destination ?? '',
        tool,
        arguments: { ...when },
        binding: index === undefined ? undefined : bindings[index]?.value,
        contracts: values,
        config: config?.value,
        hints: undefined,
        ownerRules: [],
        toolDigest: '',
      }),
    );
  };
  for (const tool of Object.keys(config?.value.tools ?? {})) add(tool, undefined, undefined);
  for (const [index, { value }] of bindings.entries()) {
    for (const row of value.tools) add(row.tool, row.when, index);
  }
  return facts;
}
