// What docs/contracts.md shows is what is there: its configuration is taken, its codes are those of the check.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { shippedFiles } from '../../src/contracts/catalogue.ts';
import { loadGatewayConfig } from '../../src/contracts/load.ts';
import { formatProblem } from '../../src/contracts/problem.ts';

const page = readFileSync(new URL('../../docs/contracts.md', import.meta.url), 'utf8');
const lints = readFileSync(new URL('../../src/contracts/contract-lints.ts', import.meta.url), 'utf8');

test('the configuration of the page is right', () => {
  const [, yaml = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
  const loaded = loadGatewayConfig(yaml, 'gateway.yaml');
  expect(loaded.ok ? [] : loaded.problems.map(formatProblem)).toEqual([]);
});

test('each code of the check is explained, and no other', () => {
  const [, union = ''] = /export type LintCode =([\s\S]*?);/.exec(lints) ?? [];
  const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code]) => code);
  const table = page.slice(page.indexOf('| code |'), page.indexOf('Notes refuse nothing'));
  const explained = [...table.matchAll(/`(\w+_\w+)`/g)].map(([, code]) => code);
  expect(codes.length).toBeGreaterThan(10);
  expect(new Set(explained)).toEqual(new Set([...codes, 'review_overdue']));
  expect(explained).toHaveLength(codes.length + 1);
});

test('as many contracts are shipped as the page says', () => {
  const bound = shippedFiles('binding').length;
  expect([bound, shippedFiles('contract').length - bound]).toEqual([10, 18]);
  expect(page).toMatch(/^Eighteen contracts for APIs are shipped beside those of the ten MCP servers/m);
});
