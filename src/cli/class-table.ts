// The tools of one server by class, with where each class comes from: what a person reads before deciding.

import type { ToolClass, ToolFacts } from '../core/contract.ts';
import type { InspectedTool } from '../gateway/inspect-server.ts';
import { printable } from './lines.ts';

/** In the order in which they are shown. */
const CLASS_NAMES: { readonly [name in ToolClass]: string } = {
  read: 'reads',
  ordinary: 'ordinary',
  irreversible: 'irreversible',
  interactive: 'interactive',
  unclassified: 'unclassified',
};

const TREATMENTS: { readonly [name in ToolClass]: string } = {
  read: 'pass, and are not recorded',
  ordinary: 'recorded, then sent',
  irreversible: 'each call waits for a person',
  interactive: 'recorded, then sent',
  unclassified: 'the first call asks a person what the tool is',
};

const SOURCES: { readonly [source in ToolFacts['classSource']]: string } = {
  configuration: 'the configuration',
  owner: 'confirmed by its owner',
  binding: 'the shipped binding for this server',
  contract: 'the shipped contract: it destroys, and nothing brings it back',
  hint: "the server's own word (readOnlyHint)",
  nobody: 'nobody has said',
};

export function classTable(tools: readonly InspectedTool[]): readonly string[] {
  if (tools.length === 0) return ['it has no tools'];
  const lines: string[] = [];
  for (const name of Object.keys(CLASS_NAMES) as ToolClass[]) {
    const ofClass = tools.filter((tool) => tool.class === name);
    for (const source of new Set(ofClass.map((tool) => tool.classSource))) {
      const named = ofClass.filter((tool) => tool.classSource === source);
      lines.push(
        `${CLASS_NAMES[name].padEnd(13)}${String(named.length).padStart(3)}  ${TREATMENTS[name]}; source: ${SOURCES[source]}`,
        ...wrapped(named.map((tool) => printable(tool.name) + (tool.dependsOnArguments ? '*' : ''))),
      );
    }
  }
  if (tools.some((tool) => tool.dependsOnArguments))
    lines.push('* other arguments may make it another class');
  return lines;
}

const WIDTH = 92;
const INDENT = ' '.repeat(18);

function wrapped(names: readonly string[]): readonly string[] {
  const lines: string[] = [];
  for (const [index, name] of names.entries()) {
    const word = index === names.length - 1 ? name : `${name},`;
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length > WIDTH) lines.push(INDENT + word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
