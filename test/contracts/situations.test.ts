import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { shippedAnswers } from '../../src/contracts/answer-table.ts';
import { readShipped, shippedFiles } from '../../src/contracts/catalogue.ts';
import { loadContract } from '../../src/contracts/load.ts';
import { answersFor, SITUATIONS, type SituationId } from '../../src/contracts/situations.ts';
import type { Contract } from '../../src/core/contract.ts';
import { CONTRACT, changed } from './texts.ts';

function contractOf(text: string): Contract {
  const loaded = loadContract(text, 'f');
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.contract;
}

/** Step and reason of each situation, for the first write of a contract. */
function stepsOf(text: string, index = 0): { readonly [situation in SituationId]?: string } {
  const contract = contractOf(text);
  const operation = contract.operations[index];
  if (operation === undefined) throw new Error('The contract has that operation.');
  return Object.fromEntries(
    answersFor(contract, operation).map(({ situation, step }) => [
      situation,
      step === undefined ? '–' : 'why' in step ? `${step.step} ${step.why.code}` : step.step,
    ]),
  );
}

describe('the answers for a write', () => {
  it('come from the core: with a look-up after a settle time, absence is put before a person', () => {
    expect(stepsOf(CONTRACT)).toEqual({
      not_sent: 'send_again',
      refused_for_now: '–',
      refused: 'close answered',
      error: 'close answered',
      lost: 'look_up',
      found: 'read_back',
      inconclusive: 'look_up',
      not_found_early: 'look_up',
      not_found_late: 'park absent_needs_decision',
      two_found: 'park contradiction',
      window_over: '–',
      overdue: 'look_up',
    });
  });

  it('follow the facts: weaker evidence, and an absence proves nothing', () => {
    const reported = changed(
      CONTRACT,
      'absent: not_applied_after_settle}\n        evidence: {grade: documented}',
      'absent: not_applied_after_settle}\n        evidence: {grade: reported}',
    );
    expect(stepsOf(reported).not_found_late).toBe('park lookups_exhausted');
    const atOnce = changed(
      changed(CONTRACT, 'kind: eventual, settle: PT10S', 'kind: read_after_write'),
      'not_applied_after_settle',
      'not_applied',
    );
    expect(stepsOf(atOnce).not_found_late).toBe('send_again');
  });

  it('of an irreversible write without a look-up: a person, after its approval as well', () => {
    expect(stepsOf(CONTRACT, 1)).toMatchObject({
      not_sent: 'send_again',
      lost: 'park no_lookup',
      found: '–',
    });
  });

  it('are there for every write that is shipped, in every situation', () => {
    const rows = shippedAnswers();
    expect(new Set(rows.map(({ contract }) => contract.id)).size).toBe(shippedFiles('contract').length);
    for (const { answers, contract, operation } of rows) {
      expect(answers.map(({ situation }) => situation)).toEqual(Object.keys(SITUATIONS));
      const lost = answers.find(({ situation }) => situation === 'lost')?.step?.step;
      expect([contract.id, operation.id, lost !== undefined]).toEqual([contract.id, operation.id, true]);
      // Whatever is stated: two records are never settled by us, and an error without a rule is never sent again.
      const of = (id: SituationId) => answers.find(({ situation }) => situation === id)?.step?.step;
      expect(['park', undefined]).toContain(of('two_found'));
      expect(of('error')).toBe('close');
    }
  });
});

describe('the algorithm', () => {
  /** Words by which a destination could be told from another; not those that many have. */
  function namesOf(contract: Contract): readonly string[] {
    const { id, destination } = contract;
    const words = [id, destination.vendor ?? ''].flatMap((text) => text.split(/[^A-Za-z0-9]+/));
    return words.map((word) => word.toLowerCase()).filter((word) => word.length > 2 && !COMMON.has(word));
  }

  const COMMON = new Set(
    'api server mcp the memory with key requests repeatable idempotency events issues tickets chat table record header commander protocol context model microsoft cloud graph development calendar files filesystem post from version authoritative tools for chrome desktop'.split(
      ' ',
    ),
  );

  function sourcesOf(folder: string): readonly (readonly [file: string, text: string])[] {
    const root = new URL(`../../src/${folder}`, import.meta.url).pathname;
    return readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [file, readFileSync(file, 'utf8')] as const);
  }

  const names = new Set(shippedFiles('contract').flatMap((file) => namesOf(contractOf(readShipped(file)))));

  function named(text: string): readonly string[] {
    const words = new Set(text.toLowerCase().match(/[a-z0-9]+/g) ?? []);
    return [...names].filter((name) => words.has(name));
  }

  it('knows the names that it looks for', () => {
    expect([...names]).toEqual(
      expect.arrayContaining(['stripe', 'zendesk', 'jira', 'slack', 'powerdns', 'caldav']),
    );
    expect(named("if (contract.id === 'stripe') return repeat();")).toEqual(['stripe']);
  });

  it('names no destination: neither the core, nor the engine that carries it out', () => {
    const found = [...sourcesOf('core'), ...sourcesOf('engine')].flatMap(([file, text]) =>
      named(text).map((name) => `${file}: ${name}`),
    );
    expect(found).toEqual([]);
  });
});
