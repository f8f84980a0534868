import { describe, expect, it } from 'vitest';
import { checkToolArguments } from '../../src/contracts/check-tool.ts';
import type { ToolFacts } from '../../src/core/contract.ts';

const facts: ToolFacts = {
  destination: 'tasks',
  tool: 'create_task',
  class: 'ordinary',
  classSource: 'configuration',
  repeat: 'unique',
  identity: ['titel', 'event/start'],
  target: { type: 'list', id: ['{list}', '{$record}'] },
  stamp: { argument: 'reference' },
  checksArguments: false,
  digest: '',
};

describe('checkToolArguments', () => {
  it('names arguments that the tool does not have', () => {
    const schema = { type: 'object', properties: { title: {}, event: {}, list: {} } };
    expect(checkToolArguments(facts, schema)).toEqual([
      'The identity of create_task names the argument titel, which the tool does not have; did you mean title?',
      'The stamp of create_task names the argument reference, which the tool does not have; it has title, event and list.',
    ]);
  });

  it('says nothing where the schema lists no members', () => {
    for (const schema of [undefined, null, true, {}, { properties: null }]) {
      expect(checkToolArguments(facts, schema)).toEqual([]);
    }
  });

  it('looks into the questions of the contract', () => {
    const asked: ToolFacts = {
      ...facts,
      identity: [],
      target: { type: 'list', id: ['x'] },
      operation: {
        id: 'task.create',
        match: ['create_task'],
        effect: 'create',
        completion: { kind: 'synchronous' },
        guards: [],
        outcomes: [],
        reversals: [],
        lookups: [
          {
            by: 'list_scan',
            tool: { name: 'find', arguments: { query: '{nme}' } },
            found: { content: [{ path: '/x', equals: '{$stamp}' }] },
            consistency: { kind: 'unknown' },
            proves: { present: 'applied', absent: 'nothing' },
            evidence: { grade: 'assumed' },
          },
        ],
      },
    };
    expect(checkToolArguments(asked, { properties: { reference: {}, name: {} } })).toEqual([
      'The look-up or read-back of create_task names the argument nme, which the tool does not have; did you mean name?',
    ]);
  });
});
