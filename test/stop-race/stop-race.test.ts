// One trial of the stop race, as `npm run stop-race` runs as many as are asked for.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../house/source.ts';

test('[S11] with 100 writes out and 1,000 ready, four processes are stopped: nothing arrives after “no more will be sent”, the list of what is out is exact, each of it settles, and lifting sends nothing', {
  timeout: 120_000,
}, async () => {
  const race = spawn(
    process.execPath,
    [join(ROOT, 'stop-race/stop-race.mjs'), '--trials', '1', '--frozen', '0'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let told = '';
  race.stdout.setEncoding('utf8');
  race.stdout.on('data', (text: string) => {
    told += text;
  });
  const [code] = (await once(race, 'close')) as [number];
  expect(told).toMatch(/late 0, unlisted 0, twice 0, open 0, afterLift 0$/m);
  expect(told).toMatch(/^1 of 1 stops came while writes were out and others waited;/m);
  expect([code, told]).toEqual([0, expect.stringMatching(/\n1 passed, 0 failed\n$/)]);
});
