// `counterfoil try lost-reply`: one story with real processes, told twice: through the gateway, and without it. What
// the destination holds is counted in its own file.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Operation } from '../core/operation.ts';
import { labelOf } from '../core/wording.ts';
import { printable } from './lines.ts';
import { EXIT, print, printJson } from './output.ts';
import { toType } from './starter.ts';
import { StoryWorld } from './story-world.ts';

export interface TryOptions {
  readonly json?: boolean;
  readonly keep?: boolean;
}

const NOTE = { text: 'The cutover begins at 22:00 UTC.' };
interface Told {
  readonly records: number;
  readonly lostAnswers: number;
  /** What the agent was told, call by call. */
  readonly answers: readonly string[];
}

export async function tryLostReply(options: TryOptions): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'counterfoil-try-'));
  try {
    const world = new StoryWorld(join(folder, 'with'), true);
    const without = await told(new StoryWorld(join(folder, 'without'), false));
    const guarded = await told(world);
    const operations = await world.operations();
    const [operation] = operations;
    const hasBitten = without.lostAnswers === 1 && guarded.lostAnswers === 1;
    const ok = hasBitten && without.records === 2 && guarded.records === 1 && operations.length === 1;
    const kept = options.keep === true || !ok;
    if (options.json === true) {
      printJson({
        ok,
        withGateway: { ...guarded, operation: operation?.id ?? null, effect: operation?.effect ?? null },
        withoutGateway: without,
        folder: kept ? folder : null,
      });
    } else {
      for (const line of asLines(without, guarded, operation)) print(line);
      if (!ok) print('This is not what should have happened.');
      if (kept) print(`Kept: ${folder} (${toType(`show --last --data ${world.data}`)})`);
    }
    if (!kept) rmSync(folder, { recursive: true, force: true });
    return ok ? EXIT.done : EXIT.internal;
  } catch (cause) {
    rmSync(folder, { recursive: true, force: true });
    throw cause;
  }
}

function asLines(without: Told, guarded: Told, operation: Operation | undefined): readonly string[] {
  const held = (count: number): string => `${count} ${count === 1 ? 'note' : 'notes'}`;
  return [
    'An agent adds a note. The note is made, its answer is lost, and the agent adds it once more.',
    '',
    `Without the gateway the destination holds ${held(without.records)}.`,
    ...without.answers.map((answer, index) => `  call ${index + 1}: ${printable(answer)}`),
    `Through the gateway it holds ${held(guarded.records)}.`,
    ...guarded.answers.map((answer, index) => `  call ${index + 1}: ${printable(answer)}`),
    ...(operation === undefined ? [] : [`  recorded as ${operation.id}: ${labelOf(operation)}`]),
  ];
}

/** The same two calls: through the gateway, or with the server itself. */
async function told(world: StoryWorld): Promise<Told> {
  const answers: string[] = [];
  world.loseNextAnswer();
  let client = await world.agent();
  for (let count = 0; count < 2; count += 1) {
    const answer = await client.call('add_note', NOTE);
    answers.push(answer ?? 'no answer: the connection ended');
    // As agents do: a connection that has ended is opened again, and the call made again.
    if (answer === undefined && count === 0) client = await world.agent();
  }
  await client.end();
  return { records: world.records(), lostAnswers: world.faultsFired(), answers };
}
