// Where a story of `try` and `demo` takes place: a folder with the destination's log, the gateway's configuration and
// its ledger. The same agent acts in it through the gateway, or with the destination alone.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Operation } from '../core/operation.ts';
import type { StoppingPoint } from '../core/stopping-points.ts';
import { withLedger } from './data-directory.ts';
import { WireClient } from './wire-client.ts';

const SERVER = fileURLToPath(new URL('./story-server.js', import.meta.url));
const COUNTERFOIL = fileURLToPath(new URL('./counterfoil.js', import.meta.url));

const CONFIG = `destination: notes
contracts: [story.contract.yaml]
bindings: [story.binding.yaml]
`;
const BINDING = `binding: 1
id: counterfoil-story
contract: counterfoil-story
server: {name: [counterfoil-story], versions: '>=1.0 <2'}
tools:
  - {tool: add_note, operation: note.add, class: ordinary}
  - {tool: post_message, operation: message.post, class: ordinary}
  - {tool: erase_notes, operation: notes.erase, class: irreversible, reason: No copy is kept.}
  - {tool: find_notes, class: read}
`;
const CONTRACT = `contract: 1
id: counterfoil-story
destination: {name: Notes, protocol: mcp}
ownership: {owner: counterfoil, reviewed_on: 2026-11-30, review_by: 2099-12-31}
operations:
  - id: note.add
    match: [add_note]
    effect: create
    identity: [text]
    stamp: {argument: ref}
    acknowledgement: {record: {from: json, path: /id}}
    completion: {kind: synchronous}
    guards: []
    lookups:
      - by: client_reference
        tool: {name: find_notes, arguments: {ref: '{$stamp}'}}
        found:
          items: {from: json, path: /items}
          where: [{path: /ref, equals: '{$stamp}'}]
          record: /id
        consistency: {kind: read_after_write}
        unique: 'no'
        proves: {present: applied, absent: not_applied}
        evidence: &source {grade: source, source: cli/story-server.ts}
    readback:
      tool: {name: find_notes, arguments: {ref: '{$stamp}'}}
      matches: [{from: json, path: /items/0/text, equals: '{text}'}]
      evidence: *source
    outcomes: []
    reversals: [{kind: none, restores: nothing, evidence: *source}]
    limits: {late_arrival: PT1S}

  - id: message.post
    match: [post_message]
    effect: message
    side_effects: [its readers are told]
    acknowledgement: {record: {from: json, path: /id}}
    completion: {kind: synchronous}
    guards: []
    lookups: []
    outcomes: []
    reversals: [{kind: none, restores: nothing, evidence: *source}]

  - id: notes.erase
    match: [erase_notes]
    effect: delete
    destructive: true
    completion: {kind: synchronous}
    guards: []
    lookups: []
    outcomes: []
    reversals: [{kind: none, restores: nothing, evidence: *source}]
`;

export class StoryWorld {
  readonly folder: string;
  readonly isGuarded: boolean;
  /** Processes that were ended in the middle of their work. */
  kills = 0;

  constructor(folder: string, isGuarded: boolean) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'gateway.yaml'), CONFIG);
    writeFileSync(join(folder, 'story.binding.yaml'), BINDING);
    writeFileSync(join(folder, 'story.contract.yaml'), CONTRACT);
    this.folder = folder;
    this.isGuarded = isGuarded;
  }

  /** The next write is carried out, and its answer is lost: the destination ends in place of it. */
  loseNextAnswer(): void {
    writeFileSync(join(this.folder, 'lose-answer'), '');
  }

  /** @param crashAt where the gateway is to end itself as a crash would */
  async agent(crashAt?: StoppingPoint): Promise<WireClient> {
    const server = [SERVER, this.folder];
    if (!this.isGuarded) return WireClient.start(server);
    const config = join(this.folder, 'gateway.yaml');
    // Alone, so that the process that is ended is the one that sends, and nothing of it stays behind.
    const gateway = [COUNTERFOIL, 'mcp', '--no-resident', '--data', this.data, '--config', config];
    return WireClient.start([...gateway, '--', process.execPath, ...server], {
      ...process.env,
      COUNTERFOIL_DRILL_CRASH_AT: crashAt ?? '',
    });
  }

  get data(): string {
    return join(this.folder, 'data');
  }

  /** What the destination holds, counted in its own file: one line for each write that it has carried out. */
  records(): number {
    const log = join(this.folder, 'notes.jsonl');
    return existsSync(log) ? readFileSync(log, 'utf8').split('\n').length - 1 : 0;
  }

  faultsFired(): number {
    return this.kills + (existsSync(join(this.folder, 'answer-lost')) ? 1 : 0);
  }

  async operations(): Promise<readonly Operation[]> {
    return withLedger(this.data, (ledger) => ledger.readings.recent(100));
  }
}
