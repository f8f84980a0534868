// The blueprint as one page of HTML: no script, nothing that is fetched, other people's words escaped.

import { type DestinationBlueprint, routeLines, type ToolBlueprint } from '../contracts/blueprint.ts';
import { listed } from '../contracts/problem.ts';
import { printable } from './lines.ts';

const ENTITIES: { readonly [character: string]: string } = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return printable(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
section { border-top: 1px solid; margin-top: 2rem; }
dl { display: grid; grid-template-columns: 10rem 1fr; gap: .25rem 1rem; }
dt { font-weight: 600; }
dd { margin: 0; }
.gaps { border-inline-start: .25rem solid; padding-inline-start: .75rem; }
@media print { section { break-inside: avoid; } }
`;

export function blueprintPage(pages: readonly DestinationBlueprint[]): string {
  const names = pages.map(({ destination }) => destination);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Blueprint: ${escaped(listed(names))}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${pages.map(pageHtml).join('\n')}
</main>
</body>
</html>`;
}

function pageHtml({ destination, mode, reads, tools }: DestinationBlueprint): string {
  const passing =
    reads.length === 0 ? '' : `<p>Reads, which pass: ${reads.map((name) => escaped(name)).join(', ')}</p>\n`;
  return `<h1>${escaped(destination)}</h1>
<p>Mode: ${mode}</p>
${passing}${tools.map(toolHtml).join('\n')}`;
}

function toolHtml(tool: ToolBlueprint): string {
  const { afterUnknown, approver, calls, gaps, guards, identity, mayStop, owner, recovery, write } = tool;
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['Class', [`${tool.class}, by ${tool.classSource}`]],
    ['Write', [write ?? 'no contract describes it']],
    ['The same call', [identity]],
    ['Approved by', [approver]],
    ['Guard', guards.length === 0 ? ['none'] : guards],
    ['After unknown', afterUnknown],
    ['Owner', [owner ?? 'nobody']],
    ['Way back', routeLines(recovery)],
    ['May stop', [mayStop.length === 0 ? 'nobody is named' : listed(mayStop)]],
  ];
  const list = rows.map(([name, lines]) => `<dt>${name}</dt><dd>${lines.map(escaped).join('<br>')}</dd>`);
  const missing =
    gaps.length === 0
      ? '<p>No gaps.</p>'
      : `<div class="gaps"><h3>Gaps</h3><ul>${gaps.map((gap) => `<li>${escaped(gap)}</li>`).join('')}</ul></div>`;
  return `<section>
<h2>${escaped(tool.tool)}${calls === undefined ? '' : ` <small>${escaped(calls)}</small>`}</h2>
<dl>
${list.join('\n')}
</dl>
${missing}
</section>`;
}
