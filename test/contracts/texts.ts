// Texts of a small task tracker's files, right as they stand; tests change a line and look at what is said.

export const CONTRACT = `contract: 1
id: tasks
revision: 3
destination: {name: Tasks, protocol: mcp}
ownership: {owner: ops, reviewed_on: 2026-11-01, review_by: 2027-05-01}
operations:
  - id: task.create
    match: [create_task]
    effect: create
    identity: [project, title]
    target: {type: slot, id: '{project}'}
    stamp: {argument: reference}
    acknowledgement: {record: {from: structured, path: /id}}
    completion: {kind: synchronous}
    guards: []
    lookups:
      - by: client_reference
        tool: {name: find_tasks, arguments: {reference: '{$stamp}'}}
        found: {items: {from: structured, path: /tasks}, record: /id, content: [{path: /title, equals: '{title}'}]}
        consistency: {kind: eventual, settle: PT10S}
        proves: {present: applied_if_content_matches, absent: not_applied_after_settle}
        evidence: {grade: documented}
    readback:
      tool: {name: get_task, arguments: {id: '{$record}'}}
      matches: [{from: structured, path: /title, equals: '{title}'}]
      evidence: {grade: documented}
    outcomes:
      - {when: {kind: [tool_error], text_starts: ['Quota: ']}, means: not_applied, evidence: {grade: documented}}
    reversals: [{kind: cancel, restores: state_only, evidence: {grade: documented}}]
  - id: task.purge
    match: [purge_task]
    effect: delete
    destructive: true
    target: {type: task, id: '{id}'}
    completion: {kind: synchronous}
    guards: []
    lookups: []
    outcomes: []
    reversals: [{kind: none, restores: nothing, evidence: {grade: documented}}]
`;

export const BINDING = `binding: 1
id: tasks-server
revision: 1
contract: tasks
server: {name: [tasks-mcp], versions: '>=1.2 <2'}
checks_arguments: {value: true, evidence: {grade: source}}
tools:
  - {tool: find_tasks, class: read}
  - {tool: get_task, class: read}
  - {tool: create_task, when: {preview: true}, class: read}
  - {tool: create_task, operation: task.create, class: ordinary}
  - {tool: purge_task, operation: task.purge, class: irreversible}
`;

export const CONFIG = `destination: tasks-eu
contracts: [tasks.contract.yaml]
bindings: [tasks.binding.yaml]
tools:
  add_comment: {class: ordinary, repeat: unique, identity: [task, text], target: {type: task, id: '{task}'}}
limits: {reply_timeout: PT30S, elapsed: PT24H, attempts: 5, approval_lifetime: PT8H, caller_wait: PT25S}
resume_window: PT96H
`;

/** The text with one occurrence of `from` changed; fails where the test no longer fits the text. */
export function changed(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`The text does not hold ${JSON.stringify(from)}.`);
  return text.replace(from, () => to);
}

/** `line:column` of the first occurrence, both counted from 1. */
export function positionIn(text: string, part: string): string {
  const offset = text.indexOf(part);
  if (offset < 0) throw new Error(`The text does not hold ${JSON.stringify(part)}.`);
  const before = text.slice(0, offset).split('\n');
  return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}
