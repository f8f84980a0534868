// The change as people are shown it: a unified diff that says exactly what is written.

import fc from 'fast-check';
import { applyEdits, type Edit } from 'jsonc-parser';
import { describe, expect, test } from 'vitest';
import { unifiedDiff } from '../../src/clients/diff.ts';

/** Applies a diff as `patch` would. */
function patched(before: string, diff: readonly string[]): readonly string[] {
  const lines = linesOf(before);
  const result: string[] = [];
  let at = 0;
  for (const line of diff.slice(2)) {
    const hunk = /^@@ -(\d+),\d+ \+(\d+),\d+ @@$/.exec(line);
    if (hunk !== null) {
      while (at < Number(hunk[1]) - 1) result.push(lines[at++] ?? '');
      expect(result.length).toBe(Number(hunk[2]) - 1);
      continue;
    }
    const text = line.slice(1);
    if (line.startsWith('+')) result.push(text);
    else {
      expect(lines[at]).toBe(text);
      at += 1;
      if (line.startsWith(' ')) result.push(text);
    }
  }
  return [...result, ...lines.slice(at)];
}

function linesOf(text: string): readonly string[] {
  const lines = text.split('\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

const diffOf = (before: string, edits: readonly Edit[]) => {
  const after = applyEdits(before, [...edits]);
  return { after, diff: unifiedDiff({ file: 'f', before, after, edits }) };
};

test('only the lines that change are marked, with three lines around them', () => {
  const before = Array.from({ length: 12 }, (_, index) => `"k${index}": true`).join('\n');
  const offset = before.indexOf('"k6"');
  const { diff } = diffOf(before, [{ offset, length: 4, content: '"n",\n"k6"' }]);
  expect(diff).toEqual([
    '--- f',
    '+++ f',
    '@@ -4,6 +4,7 @@',
    ' "k3": true',
    ' "k4": true',
    ' "k5": true',
    '+"n",',
    ' "k6": true',
    ' "k7": true',
    ' "k8": true',
  ]);
});

test('no change is no diff', () => {
  expect(unifiedDiff({ file: 'f', before: '{}', after: '{}', edits: [] })).toEqual([]);
});

describe('the diff leads from the text before to the text after', () => {
  test('whatever lines are changed', () => {
    // Truth values and names are shown as they are, so that the diff can be applied to the text itself.
    const line = fc.constantFrom('true', 'false', 'null', '{', '}', '[', ']');
    const text = fc.array(line, { minLength: 1, maxLength: 30 }).map((lines) => `${lines.join('\n')}\n`);
    const cut = fc.record({ from: fc.nat(200), length: fc.nat(12), content: text });
    fc.assert(
      fc.property(text, fc.array(cut, { minLength: 1, maxLength: 3 }), (before, cuts) => {
        const edits: Edit[] = [];
        for (const { from, length, content } of cuts.toSorted((a, b) => a.from - b.from)) {
          const last = edits.at(-1);
          const offset = Math.min(from, before.length);
          if (last !== undefined && offset <= last.offset + last.length) continue;
          edits.push({ offset, length: Math.min(length, before.length - offset), content });
        }
        const { after, diff } = diffOf(before, edits);
        expect(patched(before, diff)).toEqual(linesOf(after));
      }),
      { numRuns: 300 },
    );
  });
});
