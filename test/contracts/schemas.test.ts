import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

describe.each(['contract', 'binding', 'gateway-config', 'http-destination', 'serve-config'])(
  'the published %s schema',
  (name) => {
    const file = new URL(`../../src/contracts/schema/${name}.schema.yaml`, import.meta.url);
    const schema = parse(readFileSync(file, 'utf8'));

    it('is valid by JSON Schema 2020-12, and has no keyword that does nothing', () => {
      const said: unknown[] = [];
      const logger = { log: said.push.bind(said), warn: said.push.bind(said), error: said.push.bind(said) };
      // The branches of an alternative require members that are described beside it.
      const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, logger });
      addFormats.default(ajv, ['date']);
      ajv.compile(schema);
      expect(said).toEqual([]);
    });

    it('refuses unknown members wherever it lists known ones', () => {
      const open: string[] = [];
      const visit = (part: unknown, path: string) => {
        if (typeof part !== 'object' || part === null) return;
        const { properties, additionalProperties } = part as {
          properties?: unknown;
          additionalProperties?: unknown;
        };
        if (typeof properties === 'object' && additionalProperties !== false) open.push(path);
        for (const [key, member] of Object.entries(part)) visit(member, `${path}/${key}`);
      };
      visit(schema, '');
      // A member that happens to be called `properties` would be listed here as well; there is none.
      expect(open).toEqual([]);
    });
  },
);
