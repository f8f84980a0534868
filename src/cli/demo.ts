// `counterfoil demo`: short stories with real processes and real faults, each told through the gateway and with nothing
// between. What the destination holds is counted in its own file; what is wrong is said, and ends with another code.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { effectOf, problemsOf } from './demo-judge.ts';
import { STORIES, type Story } from './demo-stories.ts';
import { printable } from './lines.ts';
import { EXIT, print, printJson, say } from './output.ts';
import { StoryWorld } from './story-world.ts';

const NOT_CHECKED = [
  'a destination that others have written: this one is ours, so that it can lose answers when it is told to',
  'networks, other machines, a power cut: what ends here is a process',
  "a model: the agent's calls are written down",
];

/** Stories that are told side by side. */
const AT_ONCE = 4;

interface Told {
  readonly id: string;
  readonly title: string;
  readonly expectedRecords: number;
  readonly destinationRecords: number;
  readonly withoutCounterfoil: number | null;
  readonly effect: string;
  readonly told: readonly (string | null)[];
  readonly ok: boolean;
  readonly problems: readonly string[];
}

export async function demo(options: { readonly json?: boolean }): Promise<number> {
  const began = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-demo-'));
  const isJson = options.json === true;
  if (!isJson) for (const line of HEAD) print(line);
  const stories: Told[] = [];
  let faultsFired = 0;
  try {
    for (let first = 0; first < STORIES.length; first += AT_ONCE) {
      const some = STORIES.slice(first, first + AT_ONCE);
      const tellings = some.map((story, index) => tell(story, join(folder, String(first + index))));
      for (const { told, faults } of await Promise.all(tellings)) {
        stories.push(told);
        faultsFired += faults;
        if (!isJson) for (const line of linesOf(told)) print(line);
      }
    }
    const passed = stories.filter(({ ok }) => ok).length;
    const failed = stories.length - passed;
    const seconds = Math.round((performance.now() - began) / 100) / 10;
    if (isJson) printJson({ ok: failed === 0, stories, notChecked: NOT_CHECKED, faultsFired, seconds });
    else {
      for (const line of END) print(line);
      print(`${passed} passed, ${failed} failed (${faultsFired} faults fired, ${seconds} s)`);
    }
    if (failed > 0) say(`What the processes of this run wrote is kept in ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
    return failed === 0 ? EXIT.done : EXIT.internal;
  } catch (cause) {
    rmSync(folder, { recursive: true, force: true });
    throw cause;
  }
}

async function tell(story: Story, folder: string): Promise<{ readonly told: Told; readonly faults: number }> {
  const guarded = new StoryWorld(join(folder, 'with'), true);
  const answers = await story.act(guarded);
  const operations = await guarded.operations();
  const direct = story.without === undefined ? undefined : new StoryWorld(join(folder, 'without'), false);
  if (direct !== undefined) await story.act(direct);
  const effects = operations.map(({ effect }) => effect);
  const problems = problemsOf(story, {
    records: guarded.records(),
    faults: guarded.faultsFired(),
    effects,
    told: answers.at(-1),
    direct: direct === undefined ? undefined : { records: direct.records(), faults: direct.faultsFired() },
  });
  const told: Told = {
    id: story.id,
    title: story.title,
    expectedRecords: story.expectedRecords,
    destinationRecords: guarded.records(),
    withoutCounterfoil: direct?.records() ?? null,
    effect: effectOf(effects),
    told: answers.map((answer) => answer ?? null),
    ok: problems.length === 0,
    problems,
  };
  return { told, faults: guarded.faultsFired() + (direct?.faultsFired() ?? 0) };
}

// ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────

const TITLE = 66;
const TOLD_MAX = 150;

const HEAD = [
  "An agent writes notes, and real faults fall on it. The records are counted in the destination's own file.",
  '',
  row('', '', '', 'records', '', ''),
  row('', 'story', 'meant', 'held', 'without*', 'effect'),
];

const END = [
  '',
  '* made by the same agent with the same calls when nothing stands between.',
  '',
  'What was not checked here',
  ...NOT_CHECKED.map((sentence) => `  – ${sentence}`),
  '',
];

function linesOf(story: Told): readonly string[] {
  const { destinationRecords, effect, expectedRecords, id, ok, problems, title, told } = story;
  const last = (told.at(-1) ?? 'nothing').replaceAll(/op_[0-9A-Z]{20,}/g, (name) => `op_…${name.slice(-4)}`);
  const without = story.withoutCounterfoil ?? '–';
  return [
    row(ok ? '✓' : '✗', `${id.padEnd(4)} ${title}`, expectedRecords, destinationRecords, without, effect),
    `       told: ${printable(last.length > TOLD_MAX ? `${last.slice(0, TOLD_MAX).replace(/\s+\S*$/, '')} …` : last)}`,
    ...problems.map((problem) => `       ✗ ${printable(problem)}`),
  ];
}

function row(
  mark: string,
  story: string,
  meant: string | number,
  held: string | number,
  without: string | number,
  effect: string,
): string {
  const cells = [
    mark.padEnd(1),
    story.padEnd(TITLE),
    String(meant).padStart(5),
    String(held).padStart(7),
    String(without).padStart(9),
  ];
  return `${cells.join(' ')}  ${effect}`.trimEnd();
}
