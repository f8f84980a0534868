// Which tools of a server are not those of which something was said: what a person or a binding says of a tool was said
// of it as it was then, and counts on only where it makes us more careful.

import { type Binding, changedTools } from './binding.ts';

/** A tool as a server listed it when it was first seen: what a configuration that names it was written for. */
export interface FirstSeen {
  readonly digest: string;
  readonly readOnlyHint: boolean;
}

/** What a class that an owner has confirmed was said of is in its rule. */
export interface ToolChanges {
  /** Tools that the binding was not measured with. */
  readonly sinceBinding: ReadonlySet<string>;
  /** Tools that are others than when they were first seen, as they were then. */
  readonly sinceSeen: ReadonlyMap<string, FirstSeen>;
}

/** @param firstSeen by name; where it is not known how a tool was, nothing is said about it */
export function toolChanges(
  listed: readonly { readonly name: string; readonly digest: string }[],
  binding: Binding | undefined,
  firstSeen: ReadonlyMap<string, FirstSeen>,
): ToolChanges {
  const sinceSeen = new Map<string, FirstSeen>();
  for (const { name, digest } of listed) {
    const first = firstSeen.get(name);
    if (first !== undefined && first.digest !== digest) sinceSeen.set(name, first);
  }
  return { sinceBinding: new Set(binding === undefined ? [] : changedTools(binding, listed)), sinceSeen };
}

/** Whoever says what a tool is, and was told of another one. */
export type ChangedSince = { readonly binding: string } | 'configuration' | 'owner';

const SAID_BY = {
  configuration: 'that the configuration was written for',
  owner: 'of which its owner said what it is',
} as const;

/** One sentence for the owner, whichever of them it was. */
export function changedSentence(tool: string, since: ChangedSince): string {
  const whose =
    typeof since === 'string' ? SAID_BY[since] : `that the binding ${since.binding} was written for`;
  return `${tool} is not the tool ${whose}: its schema or its hints are others. What was said of it counts only where that is more careful.`;
}
