// Whether a configuration loosens the one before it: mode, classes, repeats, targets, identities, bounds, and what its
// bindings speak of, each as it follows from the files together.

import { isLooserClass } from '../core/authority.ts';
import { durationMs, type Mode, type RepeatClass, type ToolFacts } from '../core/contract.ts';
import type { Binding, BindingRow } from './binding.ts';
import type { Setup } from './check-together.ts';
import { compileToolFacts } from './compile.ts';
import { APPROVAL_LIFETIME_DEFAULT, WRITES_PER_HOUR_DEFAULT } from './gateway-config.ts';
import { looserPolicy } from './policy-care.ts';
import { listed } from './problem.ts';

const MODE_CARE: { readonly [mode in Mode]: number } = { observe: 0, guard: 1, strict: 2 };
const REPEAT_CARE: { readonly [repeat in RepeatClass]: number } = { free: 0, state: 1, unique: 2 };

/** One sentence for each thing that `next` loosens; none where it is as careful as `before` in everything. */
export function loosenedBy(next: Setup, before: Setup): readonly string[] {
  return [
    ...looserMode(next, before),
    ...looserBounds(next, before),
    ...looserTools(next, before),
    ...looserBindings(next, before),
    ...otherReviews(next, before),
    ...looserPolicy(next.config?.value.policy, before.config?.value.policy),
  ];
}

/** Whoever is sent to another page to decide may be asked there for what only the owner knows. */
function otherReviews(next: Setup, before: Setup): readonly string[] {
  const [address, earlier] = [next, before].map(({ config }) => config?.value.review_url);
  if (address === undefined || address === earlier) return [];
  return [`review_url is ${address}, and was ${earlier ?? 'not given'}.`];
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

/** What the files say of each tool that they name, each row by itself; what a server says is left out. */
function factsByCall({ bindings, config, contracts }: Setup): ReadonlyMap<string, ToolFacts> {
  const facts = new Map<string, ToolFacts>();
  const values = contracts.map(({ value }) => value);
  const add = (call: string, tool: string, binding: Binding | undefined): void => {
    facts.set(
      call,
      compileToolFacts({
        destination: config?.value.destination ?? '',
        tool,
        arguments: {},
        binding,
        contracts: values,
        config: config?.value,
        hints: undefined,
        ownerRules: [],
        toolDigest: '',
      }),
    );
  };
  for (const tool of Object.keys(config?.value.tools ?? {})) add(tool, tool, undefined);
  for (const { value } of bindings) {
    for (const row of value.tools) {
      const { unless: _unless, when: _when, ...always } = row;
      // Two bindings may have tools of one name, for different servers.
      const whose = bindings.length > 1 ? ` (${value.id})` : '';
      add(callOf(row) + whose, row.tool, { ...value, tools: [always] });
    }
  }
  return facts;
}

function callOf({ tool, unless, when }: BindingRow): string {
  const conditions = [
    ...(when === undefined ? [] : [JSON.stringify(when)]),
    ...(unless === undefined ? [] : [`unless ${unless.join(', ')}`]),
  ];
  return [tool, ...conditions].join(' ');
}

/** Of which versions of a tool, and which of its calls, the bindings speak. */
function looserBindings(next: Setup, before: Setup): readonly string[] {
  const tools = new Set(next.bindings.flatMap(({ value }) => value.tools.map(({ tool }) => tool)));
  return [...tools].flatMap((tool) => {
    const [places, earlier] = [placesOf(next, tool), placesOf(before, tool)];
    // What is new of a tool has been compared as its class.
    if (earlier.length === 0) return [];
    const isCovered = places.every((place) => earlier.some((one) => covers(one, place)));
    return isCovered ? [] : [`${tool}: the versions or calls that its binding speaks of are not as before.`];
  });
}

interface BoundPlace {
  readonly server: Binding['server'];
  /** In their order, because the first that fits counts. */
  readonly calls: readonly string[];
  /** None: whatever tool has that name. */
  readonly digests: readonly string[];
}

function placesOf({ bindings }: Setup, tool: string): readonly BoundPlace[] {
  return bindings.flatMap(({ value: { measured = [], server, tools } }) => {
    const calls = tools.filter((row) => row.tool === tool).map(callOf);
    const digests = measured.flatMap(({ tools: seen }) =>
      Object.hasOwn(seen, tool) ? [seen[tool] ?? ''] : [],
    );
    return calls.length === 0 ? [] : [{ server, calls, digests }];
  });
}

/** Which of two ranges of versions is wider, or which of two lists of conditions, is not told: they must be the same. */
function covers(earlier: BoundPlace, place: BoundPlace): boolean {
  if (!isSame(earlier.server, place.server) || !isSame(earlier.calls, place.calls)) return false;
  if (earlier.digests.length === 0) return true;
  return place.digests.length > 0 && place.digests.every((digest) => earlier.digests.includes(digest));
}
