import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, type JsonValue } from '../../src/core/canonical.ts';
import { toolDifference } from '../../src/core/tool-difference.ts';

const definition = (value: object): string => canonicalJson(value as JsonValue);

describe('what is different in a tool', () => {
  test('each place that was added, removed or changed, and nothing else', () => {
    const before = {
      name: 't',
      inputSchema: { properties: { a: { type: 'string' }, 'x/y': 1 }, required: ['a'] },
      annotations: null,
    };
    const after = {
      name: 't',
      inputSchema: { properties: { a: { type: 'number' }, b: {} }, required: ['a'] },
      annotations: { readOnlyHint: true },
    };
    expect(toolDifference(definition(before), definition(after))).toEqual([
      { at: 'annotations', before: null, after: { readOnlyHint: true } },
      { at: 'inputSchema/properties/a/type', before: 'string', after: 'number' },
      { at: 'inputSchema/properties/b', before: undefined, after: {} },
      { at: 'inputSchema/properties/x~1y', before: 1, after: undefined },
    ]);
  });

  test('none in equal definitions, at least one in others, never more than a hundred', () => {
    const schema = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 }));
    fc.assert(
      fc.property(schema, schema, (one, other) => {
        const [a, b] = [one, other].map((inputSchema) => JSON.stringify({ inputSchema }));
        // Has no canonical form: a tool with it has no definition that could be compared.
        fc.pre(!`${a}${b}`.includes('__proto__'));
        const found = toolDifference(a ?? '', b ?? '');
        expect(toolDifference(a ?? '', a ?? '')).toEqual([]);
        expect(found.length).toBeLessThanOrEqual(100);
        const isSame =
          definition(JSON.parse(a ?? '') as object) === definition(JSON.parse(b ?? '') as object);
        if (!isSame) expect(found.length).toBeGreaterThan(0);
      }),
    );
  });
});
