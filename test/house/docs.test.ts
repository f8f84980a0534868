import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { renderDocuments } from '../../scripts/docs.mjs';
import * as answerTable from '../../src/contracts/answer-table.ts';
import * as lifecycle from '../../src/core/lifecycle.ts';
import { ROOT, readSources } from './source.ts';

const made = [...renderDocuments(ROOT, lifecycle, answerTable)];

test.each(made)('%s says what its source says; "node scripts/docs.mjs" writes it anew', (file, text) => {
  expect(readFileSync(join(ROOT, file), 'utf8')).toBe(text);
});

test('a document follows its source', () => {
  const { held, ...others } = lifecycle.STAGE_EFFECTS;
  const changed = { ...lifecycle, STAGE_EFFECTS: { ...others, held: { ...held, always: [] } } };
  const drifted = [...renderDocuments(ROOT, changed, answerTable)].filter(
    ([file, text]) => new Map(made).get(file) !== text,
  );
  expect(drifted.map(([file]) => file)).toEqual(['docs/states.md']);
});

test('no document promises what nobody can keep', () => {
  const documents = [
    ...['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md'].map((file) => [file] as const),
    ...[...readSources(join(ROOT, 'docs'), /\.md$/).keys()].map((file) => [`docs/${file}`] as const),
  ];
  const texts = documents.map(([file]) => [file, readFileSync(join(ROOT, file), 'utf8')] as const);
  expect(
    texts.filter(([, text]) => /exactly[\s-]once|nothing changed/i.test(text)).map(([file]) => file),
  ).toEqual([]);
});
