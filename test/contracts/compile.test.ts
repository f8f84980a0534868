import { describe, expect, it } from 'vitest';
import { changedTools } from '../../src/contracts/binding.ts';
import {
  compileToolFacts,
  dependsOnArguments,
  explainFacts,
  type FactsQuery,
  toolDigest,
} from '../../src/contracts/compile.ts';
import type { GatewayConfig } from '../../src/contracts/gateway-config.ts';
import { loadBinding, loadContract } from '../../src/contracts/load.ts';
import { BINDING, CONTRACT, changed } from './texts.ts';

function setup({ contract = CONTRACT, binding = BINDING } = {}) {
  const loadedContract = loadContract(contract, 'contract');
  const loadedBinding = loadBinding(binding, 'binding');
  if (!loadedContract.ok || !loadedBinding.ok) throw new Error('The texts of this test are right.');
  const known = { contracts: [loadedContract.contract], binding: loadedBinding.binding };
  const nothing = { contracts: [], binding: undefined };
  const query = (tool: string, more: Partial<FactsQuery> = {}): FactsQuery => ({
    destination: 'tasks-eu',
    tool,
    arguments: {},
    ...known,
    hints: undefined,
    ownerRules: [],
    toolDigest: 'd1',
    ...more,
  });
  return { query, nothing };
}

function config(tools: NonNullable<GatewayConfig['tools']>): GatewayConfig {
  return { destination: 'tasks-eu', tools };
}

describe('a row that counts unless an argument is given', () => {
  const conditional = BINDING.replace(
    '{tool: create_task, when: {preview: true}, class: read}',
    '{tool: create_task, unless: [file, options/file], class: read}',
  );
  const { query } = setup({ binding: conditional });
  const classOf = (args: FactsQuery['arguments']) =>
    compileToolFacts(query('create_task', { arguments: args })).class;

  it('counts while none of them is there, and null is there', () => {
    expect([{}, { title: 'a' }, { options: { colour: 'red' } }].map(classOf)).toEqual([
      'read',
      'read',
      'read',
    ]);
    expect([{ file: 'a' }, { file: null }, { options: { file: '' } }].map(classOf)).toEqual([
      'ordinary',
      'ordinary',
      'ordinary',
    ]);
  });

  it('makes the class depend on the arguments', () => {
    const { binding } = query('create_task');
    expect(dependsOnArguments(binding, 'create_task')).toBe(true);
    expect(dependsOnArguments(binding, 'find_tasks')).toBe(false);
  });

  it('hides a later row only where that one names as much', () => {
    const isTaken = (later: string) => {
      const rows = `{tool: create_task, unless: [file], class: read}\n  - {tool: create_task, ${later}, class: read}`;
      const text = BINDING.replace('{tool: create_task, when: {preview: true}, class: read}', rows);
      return loadBinding(text, 'binding').ok;
    };
    expect(isTaken('when: {preview: true}')).toBe(true);
    expect(isTaken('unless: [other]')).toBe(true);
    expect(isTaken('unless: [other, file]')).toBe(false);
    expect(isTaken('unless: [file], when: {preview: true}')).toBe(false);
  });
});

describe('a tool that has changed since its binding was written', () => {
  const { query } = setup();
  const since = (tool: string) => ({ sinceBinding: new Set([tool]), sinceSeen: new Map() });
  const changed = (tool: string, more: Partial<FactsQuery> = {}) =>
    compileToolFacts(query(tool, { changes: since(tool), ...more }));

  it('is asked about: nothing of what the binding says of it counts, and a hint does not make a read of it', () => {
    for (const hints of [undefined, { readOnlyHint: true }]) {
      const facts = changed('create_task', { hints });
      expect(facts).toMatchObject({ class: 'unclassified', classSource: 'nobody', repeat: 'free' });
      // So that the person who is asked is told what it was, as for a class that a person had given.
      expect(facts.changedFrom).toBe('ordinary');
      expect(facts.operation).toBeUndefined();
      expect(facts.identity).toBeUndefined();
      expect(facts.target).toBeUndefined();
    }
  });

  it('is what its owner says that it is', () => {
    const ownerRules = [{ tool: 'create_task', toolDigest: 'd1', class: 'ordinary' } as const];
    const facts = changed('create_task', { ownerRules });
    expect(facts).toMatchObject({ class: 'ordinary', classSource: 'owner' });
    expect(facts.changedFrom).toBeUndefined();
    const config = { destination: 'd', tools: { create_task: { class: 'interactive' } } } as const;
    expect(changed('create_task', { config })).toMatchObject({
      class: 'interactive',
      classSource: 'configuration',
    });
  });

  it('stays irreversible where it was, whatever is said of it since', () => {
    expect(changed('purge_task')).toMatchObject({
      class: 'irreversible',
      classSource: 'binding',
      changedFrom: 'irreversible',
    });
    const ownerRules = [{ tool: 'purge_task', toolDigest: 'd1', class: 'read' } as const];
    expect(changed('purge_task', { ownerRules, hints: { readOnlyHint: true } }).class).toBe('irreversible');
    expect(changed('purge_task').operation).toBeUndefined();
  });

  it('stays a read by its hint, where that is all that was known of it', () => {
    expect(changed('find_tasks').class).toBe('unclassified');
    // No read is what a person would be asked to go on with.
    expect(changed('find_tasks').changedFrom).toBeUndefined();
    expect(changed('find_tasks', { hints: { readOnlyHint: true } })).toMatchObject({
      class: 'read',
      classSource: 'hint',
    });
  });

  it('is asked nothing any more by the writes that were looked up or read back through it', () => {
    const without = (tool: string) =>
      compileToolFacts(query('create_task', { changes: since(tool) })).operation ?? { lookups: undefined };
    expect(without('find_tasks')).toMatchObject({ lookups: [], readback: { tool: { name: 'get_task' } } });
    expect(without('get_task').lookups).toHaveLength(1);
    expect('readback' in without('get_task')).toBe(false);
    expect(without('purge_task')).toEqual(compileToolFacts(query('create_task')).operation);
  });

  it('is told by the digests that the binding states, of the tools that it states some for', () => {
    const digest = (digit: string) => digit.repeat(64);
    const measured = [
      { package: 'tasks', version: '1', on: '2026-11-30', tools: { a: digest('1'), b: digest('2') } },
      { package: 'tasks', version: '2', on: '2026-11-30', tools: { a: digest('3') } },
    ];
    const loaded = loadBinding(`${BINDING}measured: ${JSON.stringify(measured)}\n`, 'binding');
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const changedOf = (tools: { [name: string]: string }) =>
      changedTools(
        loaded.binding,
        Object.entries(tools).map(([name, value]) => ({ name, digest: value })),
      );
    expect(changedOf({ a: digest('1'), b: digest('2'), c: digest('9') })).toEqual([]);
    expect(changedOf({ a: digest('3'), b: digest('2') })).toEqual([]);
    expect(changedOf({ a: digest('2'), b: digest('3'), constructor: digest('1') })).toEqual(['a', 'b']);
    // A tool without an exact form fits none.
    expect(changedOf({ a: '' })).toEqual(['a']);
  });
});

describe('who decides the class', () => {
  const { query, nothing } = setup();
  const readOnly = { readOnlyHint: true };
  const rule = { tool: 'find', toolDigest: 'd1', class: 'ordinary' } as const;

  it('nobody: the tool is unclassified, and free', () => {
    expect(compileToolFacts(query('find', nothing))).toMatchObject({
      class: 'unclassified',
      classSource: 'nobody',
      repeat: 'free',
      checksArguments: false,
    });
  });

  it('a hint makes a read, and nothing else', () => {
    const hinted = { ...nothing, hints: readOnly };
    expect(compileToolFacts(query('find', hinted))).toMatchObject({ class: 'read', classSource: 'hint' });
    const other = { ...nothing, hints: { readOnlyHint: false, destructiveHint: false } };
    expect(compileToolFacts(query('find', other))).toMatchObject({ class: 'unclassified' });
  });

  it('the binding goes before the hint', () => {
    const facts = compileToolFacts(query('create_task', { hints: readOnly }));
    expect(facts).toMatchObject({ class: 'ordinary', classSource: 'binding' });
  });

  it('the owner goes before the binding', () => {
    const ownerRules = [{ tool: 'create_task', toolDigest: 'd1', class: 'irreversible' } as const];
    expect(compileToolFacts(query('create_task', { ownerRules }))).toMatchObject({
      class: 'irreversible',
      classSource: 'owner',
    });
  });

  it('the newest rule of the owner counts, and only for the tool as it was confirmed', () => {
    const ownerRules = [rule, { ...rule, class: 'interactive' } as const];
    expect(compileToolFacts(query('find', { ...nothing, ownerRules }))).toMatchObject({
      class: 'interactive',
    });
    const changedTool = { ...nothing, ownerRules, toolDigest: 'd2' };
    expect(compileToolFacts(query('find', changedTool))).toMatchObject({ class: 'unclassified' });
    const unreadable = [{ ...rule, toolDigest: '' }];
    expect(
      compileToolFacts(query('find', { ...nothing, ownerRules: unreadable, toolDigest: '' })),
    ).toMatchObject({
      class: 'unclassified',
    });
  });

  it('the configuration goes before the owner', () => {
    const more = { ...nothing, ownerRules: [rule], config: config({ find: { class: 'read' } }) };
    expect(compileToolFacts(query('find', more))).toMatchObject({
      class: 'read',
      classSource: 'configuration',
    });
  });

  it('a tool named like an inherited member is not declared by that', () => {
    const more = { ...nothing, config: config({ find: { class: 'read' } }) };
    for (const tool of ['constructor', 'toString', '__proto__']) {
      expect(compileToolFacts(query(tool, more)).class).toBe('unclassified');
    }
  });
});

describe('the floor', () => {
  it.each(['read', 'ordinary', 'interactive'] as const)('no %s of anybody lowers it', (lower) => {
    const { query } = setup({ binding: changed(BINDING, 'class: irreversible', 'class: ordinary') });
    const ownerRules = [{ tool: 'purge_task', toolDigest: 'd1', class: lower }];
    const facts = compileToolFacts(
      query('purge_task', {
        ownerRules,
        config: config({ purge_task: { class: lower } }),
        hints: { readOnlyHint: true },
      }),
    );
    expect(facts).toMatchObject({ class: 'irreversible', classSource: 'contract' });
  });

  it('holds for what a binding declares irreversible', () => {
    const { query } = setup({
      binding: changed(BINDING, 'task.create, class: ordinary', 'task.create, class: irreversible'),
    });
    const more = { config: config({ create_task: { class: 'ordinary' } }) };
    expect(compileToolFacts(query('create_task', more))).toMatchObject({
      class: 'irreversible',
      classSource: 'binding',
    });
  });

  it('a destructive write with a way back is not below it', () => {
    const contract = changed(
      CONTRACT,
      'reversals: [{kind: none, restores: nothing',
      'reversals: [{kind: restore, restores: record',
    );
    const { query } = setup({
      contract,
      binding: changed(BINDING, 'class: irreversible', 'class: ordinary'),
    });
    expect(compileToolFacts(query('purge_task'))).toMatchObject({
      class: 'ordinary',
      classSource: 'binding',
    });
  });

  it('what a contract describes as a write is never a read', () => {
    const { query } = setup();
    const ownerRules = [{ tool: 'create_task', toolDigest: 'd1', class: 'read' } as const];
    const more = { ownerRules, config: config({ create_task: { class: 'read' } }) };
    expect(compileToolFacts(query('create_task', more))).toMatchObject({
      class: 'ordinary',
      classSource: 'binding',
    });
    const named = {
      binding: undefined,
      hints: { readOnlyHint: true },
      config: config({ make: { contract_operation: 'tasks/task.create' } }),
    };
    expect(compileToolFacts(query('make', named))).toMatchObject({ class: 'unclassified', repeat: 'unique' });
  });
});

describe('rows with conditions', () => {
  const { query } = setup();

  it('the first row whose conditions hold is the one that counts', () => {
    expect(compileToolFacts(query('create_task', { arguments: { preview: true } }))).toMatchObject({
      class: 'read',
    });
    expect(
      compileToolFacts(query('create_task', { arguments: { preview: true } })).operation,
    ).toBeUndefined();
    for (const preview of [false, 'true', 1, null]) {
      expect(compileToolFacts(query('create_task', { arguments: { preview } }))).toMatchObject({
        class: 'ordinary',
      });
    }
  });

  it('what matches none of the rows for its tool is an unclassified write, whatever the hint says', () => {
    const only = setup({
      binding: changed(BINDING, '  - {tool: create_task, operation: task.create, class: ordinary}\n', ''),
    });
    const facts = compileToolFacts(only.query('create_task', { hints: { readOnlyHint: true } }));
    expect(facts).toMatchObject({ class: 'unclassified', classSource: 'nobody', repeat: 'free' });
  });

  it('conditions are on own arguments, also within them', () => {
    const deep = setup({
      binding: changed(BINDING, 'when: {preview: true}', 'when: {options/mode: [1, {a: b}]}'),
    });
    const right = { arguments: { options: { mode: [1, { a: 'b' }] } } };
    expect(compileToolFacts(deep.query('create_task', right))).toMatchObject({ class: 'read' });
    expect(compileToolFacts(deep.query('create_task', { arguments: { options: [] } }))).toMatchObject({
      class: 'ordinary',
    });
    const inherited = setup({
      binding: changed(BINDING, 'when: {preview: true}', 'when: {constructor/name: Object}'),
    });
    expect(compileToolFacts(inherited.query('create_task'))).toMatchObject({ class: 'ordinary' });
  });

  it('an operation that the configuration names leaves what the binding knows as a read', () => {
    const more = { config: config({ create_task: { contract_operation: 'tasks/task.create' } }) };
    expect(compileToolFacts(query('create_task', { ...more, arguments: { preview: true } }))).toMatchObject({
      class: 'read',
    });
    expect(compileToolFacts(query('create_task', more))).toMatchObject({ class: 'ordinary' });
  });

  it('tells which tools have them', () => {
    const { binding } = query('x');
    expect(dependsOnArguments(binding, 'create_task')).toBe(true);
    expect(dependsOnArguments(binding, 'purge_task')).toBe(false);
    expect(dependsOnArguments(undefined, 'create_task')).toBe(false);
  });
});

describe('the facts of a write', () => {
  const { query, nothing } = setup();

  it('come from the contract', () => {
    expect(compileToolFacts(query('create_task'))).toMatchObject({
      repeat: 'unique',
      identity: ['project', 'title'],
      target: { type: 'slot', id: ['{project}'] },
      stamp: { argument: 'reference' },
      checksArguments: true,
      contract: { id: 'tasks', revision: 3, reviewBy: '2027-05-01' },
      operation: { id: 'task.create' },
    });
  });

  it('come from the configuration where it says more', () => {
    const declaration = {
      repeat: 'free',
      identity: ['project'],
      target: { type: 'list', id: ['{project}', 'x'] },
    } as const;
    expect(
      compileToolFacts(query('create_task', { config: config({ create_task: declaration }) })),
    ).toMatchObject({
      ...declaration,
      stamp: { argument: 'reference' },
    });
  });

  it('the repeat class follows from the effect, where the contract does not state it', () => {
    const expected = {
      create: 'unique',
      message: 'unique',
      update: 'state',
      replace: 'state',
      upsert: 'state',
      delete: 'state',
      action: 'free',
    };
    for (const [effect, repeat] of Object.entries(expected)) {
      const { query: ask } = setup({ contract: changed(CONTRACT, 'effect: create', `effect: ${effect}`) });
      expect(compileToolFacts(ask('create_task')).repeat).toBe(repeat);
    }
  });

  it('the contract may state another, and an interactive tool is free', () => {
    const stated = setup({
      contract: changed(CONTRACT, 'effect: create', 'effect: create\n    repeat: state'),
    });
    expect(compileToolFacts(stated.query('create_task')).repeat).toBe('state');
    const more = { config: config({ create_task: { class: 'interactive' as const } }) };
    expect(compileToolFacts(query('create_task', more)).repeat).toBe('free');
  });

  it('a read has none of them', () => {
    const facts = compileToolFacts(query('get_task'));
    expect(Object.keys(facts).toSorted()).toEqual([
      'checksArguments',
      'class',
      'classSource',
      'destination',
      'digest',
      'repeat',
      'tool',
    ]);
  });

  it('an untrusted word about checked arguments does not count', () => {
    const weak = setup({
      binding: changed(BINDING, 'evidence: {grade: source}', 'evidence: {grade: reported}'),
    });
    expect(compileToolFacts(weak.query('create_task')).checksArguments).toBe(false);
  });

  it('an operation that is not loaded stops before anything is sent', () => {
    expect(() => compileToolFacts(query('create_task', { contracts: [] }))).toThrow(
      /Assertion: create_task is bound to tasks\/task\.create/,
    );
  });

  it('equal facts have the same digest, and any other fact has another', () => {
    const digest = (more: Partial<FactsQuery> = {}, from = query) =>
      compileToolFacts(from('create_task', more)).digest;
    expect(digest()).toMatch(/^[0-9a-f]{64}$/);
    expect(digest({}, setup().query)).toBe(digest());
    const others = [
      digest({ destination: 'tasks-us' }),
      digest({ config: config({ create_task: { repeat: 'free' } }) }),
      digest({}, setup({ contract: changed(CONTRACT, 'revision: 3', 'revision: 4') }).query),
      digest({}, setup({ contract: changed(CONTRACT, 'settle: PT10S', 'settle: PT11S') }).query),
      digest(nothing),
    ];
    expect(new Set([digest(), ...others]).size).toBe(others.length + 1);
  });

  it('are compiled once, and kept for the objects they came from', () => {
    const facts = compileToolFacts(query('create_task', { arguments: { title: 'a' } }));
    expect(compileToolFacts(query('create_task', { arguments: { title: 'b' } }))).toBe(facts);
    expect(Object.isFrozen(facts)).toBe(true);
    expect(compileToolFacts(setup().query('create_task'))).not.toBe(facts);
  });

  it('does not keep without bound what callers make up', () => {
    const facts = compileToolFacts(query('made-up'));
    for (let index = 0; index < 5_000; index++) compileToolFacts(query(`made-up-${index}`));
    expect(compileToolFacts(query('made-up'))).toEqual(facts);
  });
});

describe('a tool that is not what it was when it was first seen', () => {
  const { query, nothing } = setup();
  const seenAs = (readOnlyHint: boolean) => ({
    sinceBinding: new Set<string>(),
    sinceSeen: new Map([['find', { digest: 'd0', readOnlyHint }]]),
  });
  const declared = (toolClass: 'ordinary' | 'irreversible' | 'read') =>
    query('find', {
      ...nothing,
      changes: seenAs(false),
      config: { destination: 'd', tools: { find: { class: toolClass } } },
    });

  it('is unclassified whatever the configuration says, except that irreversible stays so', () => {
    expect(compileToolFacts(declared('ordinary'))).toMatchObject({
      class: 'unclassified',
      changedFrom: 'ordinary',
    });
    expect(compileToolFacts(declared('read'))).toMatchObject({ class: 'unclassified', changedFrom: 'read' });
    expect(compileToolFacts(declared('irreversible'))).toMatchObject({
      class: 'irreversible',
      classSource: 'configuration',
      changedFrom: 'irreversible',
    });
  });

  it('is what was confirmed of its present version, before what the configuration says of another', () => {
    const ownerRules = [{ tool: 'find', toolDigest: 'd1', class: 'irreversible' } as const];
    const facts = compileToolFacts({ ...declared('ordinary'), ownerRules });
    expect(facts).toMatchObject({ class: 'irreversible', classSource: 'owner' });
    expect(facts.changedFrom).toBeUndefined();
    // Unchanged, the configuration says most.
    const same = { ...declared('ordinary'), ownerRules, changes: undefined };
    expect(compileToolFacts(same)).toMatchObject({ class: 'ordinary', classSource: 'configuration' });
  });

  it('is not believed when it calls itself a read only now, and is when it did so from the start', () => {
    const hinted = { ...nothing, hints: { readOnlyHint: true } };
    expect(compileToolFacts(query('find', { ...hinted, changes: seenAs(false) })).class).toBe('unclassified');
    expect(compileToolFacts(query('find', { ...hinted, changes: seenAs(true) })).class).toBe('read');
  });

  it('an owner’s class of another version counts no more, and one that was irreversible does', () => {
    for (const [toolClass, now] of [
      ['ordinary', 'unclassified'],
      ['irreversible', 'irreversible'],
    ] as const) {
      const ownerRules = [{ tool: 'find', toolDigest: 'd0', class: toolClass }];
      expect(compileToolFacts(query('find', { ...nothing, ownerRules }))).toMatchObject({
        class: now,
        changedFrom: toolClass,
      });
    }
  });
});

describe('toolDigest', () => {
  const tool = {
    name: 'create_task',
    inputSchema: { type: 'object', properties: { a: {}, b: {} } },
    annotations: { readOnlyHint: false },
  };

  it('is the same whatever the order of keys, the title or the description', () => {
    const other = {
      description: 'x',
      annotations: tool.annotations,
      inputSchema: { properties: { b: {}, a: {} }, type: 'object' },
      name: 'create_task',
    };
    expect(toolDigest(other)).toBe(toolDigest(tool));
  });

  it('differs with name, schema and annotations', () => {
    const others = [
      { ...tool, name: 'create_tasks' },
      { ...tool, inputSchema: { type: 'object' } },
      { ...tool, annotations: { readOnlyHint: true } },
      { name: 'create_task' },
    ];
    expect(new Set([tool, ...others].map(toolDigest)).size).toBe(5);
  });

  it('is empty where there is no exact form, so that no rule fits', () => {
    expect(toolDigest({ ...tool, inputSchema: { pattern: '\ud800' } })).toBe('');
    let deep: unknown = {};
    for (let depth = 0; depth < 5_000; depth++) deep = { deep };
    expect(toolDigest({ ...tool, inputSchema: deep })).toBe('');
  });
});

describe('explainFacts', () => {
  const { query, nothing } = setup();

  it('tells a write in sentences', () => {
    expect(explainFacts(compileToolFacts(query('create_task')))).toEqual([
      'create_task on tasks-eu is an ordinary write: the binding of its server says so.',
      'An equal call in the same run is answered with the earlier operation; a second one needs a person.',
      'Its arguments project and title make it the same intended write; other arguments may differ.',
      'It changes the slot named by {project}; another write to it waits until this one is settled.',
      'Its argument reference is filled by us, with a reference to look for.',
      'The server refuses arguments that do not fit by itself, before it changes anything.',
      'The contract tasks, revision 3, describes it as task.create; it is to be reviewed by 2027-05-01.',
      'After a lost reply it is looked up by client reference.',
      'What it changed is read back.',
    ]);
  });

  it('tells what nobody has said', () => {
    expect(explainFacts(compileToolFacts(query('find', nothing)))).toEqual([
      'find on tasks-eu is not classified: nobody has said yet how it is to be treated.',
      'An equal call after an answer that arrived is an operation of its own.',
      'All its arguments make it the same intended write.',
      'No target is declared, so that other writes do not wait for it.',
      'Arguments are checked here, because the server is not known to check them itself.',
      'No contract describes it: nothing is repeated or looked up by us.',
    ]);
  });

  it('tells a read, and the floor', () => {
    expect(explainFacts(compileToolFacts(query('get_task')))).toEqual([
      'get_task on tasks-eu is a read: the binding of its server says so.',
      'It passes unrecorded.',
    ]);
    expect(explainFacts(compileToolFacts(query('purge_task')))[0]).toBe(
      'purge_task on tasks-eu is an irreversible write, which waits for a person each time: its contract states that it destroys something and cannot be taken back.',
    );
  });
});
