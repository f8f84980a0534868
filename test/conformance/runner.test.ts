// The runner with a small suite in place of the official one: it must be green where nothing is damaged, and red,
// naming the check, where something is.

import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const RUNNER = here('../../conformance/conformance.mjs');
const SUITE = here('./fixtures/suite/bin/index.mjs');

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function conformance(...flags: string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(process.execPath, [RUNNER, '--suite', SUITE, ...flags], (error, out, err) => {
      const kept = /is kept in (\S+)/.exec(out)?.[1];
      if (kept !== undefined) rmSync(kept, { recursive: true });
      resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, out, err });
    });
  });
}

const one = ['--generation', '2025-11-25'];
const lastLine = ({ out }: Ran): string => out.trimEnd().split('\n').at(-1) ?? '';

describe.concurrent('the conformance run', () => {
  test('is green where nothing is damaged, and counts what it has compared', async () => {
    const ran = await conformance(...one, '--break', 'none');
    expect(ran.err).toBe('');
    // Two scenarios directly, and two through; the third does not pass directly and is not required.
    expect(lastLine(ran)).toBe('4 passed, 0 failed');
    expect(ran.code).toBe(0);
  });

  test('is red where notifications get lost, and names scenario and check', async () => {
    const ran = await conformance(...one, '--break', 'drop-notifications');
    expect(ran.out).toContain('break drop-notifications: progress: progress-holds: SUCCESS → FAILURE');
    expect(lastLine(ran)).toBe('3 passed, 1 failed');
    expect(ran.code).toBe(1);
  });

  test('is red where the _meta of requests gets lost, and says so in JSON', async () => {
    const ran = await conformance(...one, '--break', 'drop-meta', '--json');
    const said = JSON.parse(lastLine(ran));
    expect(said).toMatchObject({ ok: false, passed: 3, failed: 1, notAsked: 1 });
    expect(said.generations[0].legs[1]).toMatchObject({ name: 'break drop-meta', damaged: 1 });
    expect(ran.code).toBe(1);
  });

  test('is red where nobody listens', async () => {
    const ran = await conformance(...one, '--through', 'http://127.0.0.1:1/mcp');
    expect(lastLine(ran)).toBe('2 passed, 2 failed');
    expect(ran.code).toBe(1);
  });

  test.each([
    ['--brake', 'none'],
    ['--break', 'everything'],
    ['--generation', '2024'],
    ['--break', 'none', '--through', 'http://127.0.0.1:1/mcp'],
  ])('refuses %s %s', async (...flags) => {
    const { code, out, err } = await conformance(...flags);
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).toMatch(/^\S.*\.\n\n/);
  });
});
