import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Binding } from '../../src/contracts/binding.ts';
import { findShippedFacts, readShipped, shippedFiles } from '../../src/contracts/catalogue.ts';
import { checkTogether } from '../../src/contracts/check-together.ts';
import { checkToolArguments } from '../../src/contracts/check-tool.ts';
import { compileToolFacts, toolDigest } from '../../src/contracts/compile.ts';
import { loadBinding, loadContract } from '../../src/contracts/load.ts';
import type { JsonValue } from '../../src/core/canonical.ts';
import type { Contract, ToolFacts, ToolQuestion } from '../../src/core/contract.ts';
import { classifyReply, fillTemplate, readLookup, readReadBack } from '../../src/core/reply-reading.ts';
import { FilesystemServer } from './filesystem-server.ts';

describe('every shipped file', () => {
  it.each(shippedFiles('contract'))('%s is right, and named after its id', (file) => {
    const loaded = loadContract(readShipped(file), file);
    expect(loaded).toMatchObject({ ok: true, contract: { id: file.replace('.contract.yaml', '') } });
  });

  it.each(shippedFiles('binding'))('%s is right, and fits the contract that it names', (file) => {
    const binding = loadBinding(readShipped(file), file);
    if (!binding.ok) expect.fail(JSON.stringify(binding.problems));
    const contractFile = `${binding.binding.contract}.contract.yaml`;
    const contract = loadContract(readShipped(contractFile), contractFile);
    if (!contract.ok) expect.fail(JSON.stringify(contract.problems));
    const setup = {
      contracts: [{ value: contract.contract, source: contract.source }],
      bindings: [{ value: binding.binding, source: binding.source }],
    };
    expect(checkTogether(setup)).toEqual([]);
    const [name = ''] = binding.binding.server.name;
    const version = [binding.binding.server.versions].flat()[0] ?? '';
    const found = findShippedFacts({ name, version });
    expect([found?.binding.value, found?.contract.value]).toEqual([binding.binding, contract.contract]);
  });
});

describe('the unmodified server for files', () => {
  let server: FilesystemServer;
  let binding: Binding;
  let contracts: readonly Contract[];

  beforeAll(async () => {
    server = await FilesystemServer.start();
    const shipped = findShippedFacts(server.serverInfo);
    if (shipped === undefined) throw new Error('A binding is shipped for this server.');
    binding = shipped.binding.value;
    contracts = [shipped.contract.value];
  });
  afterAll(() => server.stop());

  function factsFor(tool: string, args: JsonValue): ToolFacts {
    const nothingElse = { hints: undefined, ownerRules: [], toolDigest: '' };
    return compileToolFacts({
      destination: 'files',
      tool,
      arguments: args,
      binding,
      contracts,
      ...nothingElse,
    });
  }

  async function ask(question: ToolQuestion | undefined, args: JsonValue) {
    if (question === undefined) throw new Error('The contract asks a question.');
    const filled = fillTemplate(question.arguments, { arguments: args });
    if (!filled.ok) throw new Error(filled.problem);
    return server.call(question.name, filled.value as object);
  }

  async function readBack(tool: string, args: JsonValue) {
    const readback = factsFor(tool, args).operation?.readback;
    if (readback === undefined) throw new Error('The contract has a read-back.');
    return readReadBack(await ask(readback.tool, args), readback, { arguments: args });
  }

  async function lookUp(tool: string, args: JsonValue) {
    const lookup = factsFor(tool, args).operation?.lookups[0];
    if (lookup === undefined) throw new Error('The contract has a look-up.');
    return readLookup(await ask(lookup.tool, args), lookup, { arguments: args });
  }

  it('is the one that the binding is for', () => {
    expect(server.serverInfo).toEqual({ name: 'secure-filesystem-server', version: '0.2.0' });
    expect(findShippedFacts(server.serverInfo)).toBe(findShippedFacts({ ...server.serverInfo }));
    expect(findShippedFacts({ ...server.serverInfo, version: '0.3.0' })).toBeUndefined();
    expect(findShippedFacts({ name: 'filesystem', version: '0.2.0' })).toBeUndefined();
  });

  it('has a row for each of its tools, and no other; its reads are those that it marks as reading only', async () => {
    const tools = await server.tools();
    const rows = binding.tools;
    expect([...new Set(rows.map((row) => row.tool))].toSorted()).toEqual(
      tools.map(({ name }) => name).toSorted(),
    );
    for (const { name, annotations } of tools) {
      expect([name, factsFor(name, {}).class === 'read']).toEqual([name, annotations?.readOnlyHint === true]);
    }
    expect(new Set(tools.map(toolDigest)).size).toBe(tools.length);
  });

  it('has the arguments that the contract names', async () => {
    for (const { name, inputSchema } of await server.tools()) {
      expect(checkToolArguments(factsFor(name, {}), inputSchema)).toEqual([]);
    }
  });

  it('states of each write how often and on what it is made', () => {
    const facts = (tool: string) => {
      const { class: toolClass, repeat, identity, target, checksArguments } = factsFor(tool, {});
      return [toolClass, repeat, identity, target?.id, checksArguments];
    };
    expect(facts('write_file')).toEqual(['ordinary', 'state', ['path', 'content'], ['{path}'], true]);
    expect(facts('edit_file')).toEqual(['ordinary', 'free', ['path', 'edits'], ['{path}'], true]);
    expect(facts('create_directory')).toEqual(['ordinary', 'state', ['path'], ['{path}'], true]);
    expect(facts('move_file')).toEqual([
      'ordinary',
      'state',
      ['source', 'destination'],
      ['{source}', '{destination}'],
      true,
    ]);
  });

  describe('ordinary mistakes: refused, by the contract, and nothing is changed', () => {
    const missing = 'missing.txt';
    const mistakes: [string, string, (path: (...names: string[]) => string) => object][] = [
      [
        'the text to replace is not there',
        'edit_file',
        (path) => ({ path: path('notes.txt'), edits: [{ oldText: 'three', newText: '3' }] }),
      ],
      [
        'one of two texts is not there',
        'edit_file',
        (path) => ({
          path: path('notes.txt'),
          edits: [
            { oldText: 'one', newText: '1' },
            { oldText: 'three', newText: '3' },
          ],
        }),
      ],
      ['a path that is not allowed', 'write_file', () => ({ path: '/etc/notes.txt', content: 'x' })],
      [
        'a path that is not allowed',
        'edit_file',
        () => ({ path: '/etc/hosts', edits: [{ oldText: 'a', newText: 'b' }] }),
      ],
      ['a path that is not allowed', 'create_directory', () => ({ path: '/etc/notes' })],
      [
        'a path that is not allowed',
        'move_file',
        (path) => ({ source: path('notes.txt'), destination: '/etc/notes.txt' }),
      ],
      ['a link that leads out', 'write_file', (path) => ({ path: path('out', 'notes.txt'), content: 'x' })],
      ['a path of another system', 'write_file', () => ({ path: 'C:\\notes.txt', content: 'x' })],
      ['an argument is missing', 'write_file', (path) => ({ path: path('notes.txt') })],
      ['an argument is missing', 'edit_file', (path) => ({ path: path('notes.txt') })],
      ['an argument is missing', 'create_directory', () => ({})],
      ['an argument is missing', 'move_file', (path) => ({ source: path('notes.txt') })],
      [
        'an argument of another type',
        'edit_file',
        (path) => ({ path: path('notes.txt'), edits: [], dryRun: 'true' }),
      ],
      [
        'the file is not there',
        'edit_file',
        (path) => ({ path: path(missing), edits: [{ oldText: 'a', newText: 'b' }] }),
      ],
      [
        'the file is not there',
        'move_file',
        (path) => ({ source: path(missing), destination: path('moved.txt') }),
      ],
      [
        'the folder is not there',
        'write_file',
        (path) => ({ path: path('gone', 'deep', 'notes.txt'), content: 'x' }),
      ],
      [
        'the folder is not there',
        'move_file',
        (path) => ({ source: path('notes.txt'), destination: path('gone', 'notes.txt') }),
      ],
      ['a folder in place of a file', 'write_file', (path) => ({ path: path('folder'), content: 'x' })],
      [
        'a folder in place of a file',
        'edit_file',
        (path) => ({ path: path('folder'), edits: [{ oldText: 'a', newText: 'b' }] }),
      ],
      [
        'a file in place of a folder',
        'write_file',
        (path) => ({ path: path('notes.txt', 'x'), content: 'x' }),
      ],
      ['a file in place of a folder', 'create_directory', (path) => ({ path: path('notes.txt') })],
      ['a file in place of a folder', 'create_directory', (path) => ({ path: path('notes.txt', 'x') })],
      [
        'the new name is taken',
        'move_file',
        (path) => ({ source: path('notes.txt'), destination: path('other.txt') }),
      ],
      [
        'a folder into itself',
        'move_file',
        (path) => ({ source: path('folder'), destination: path('folder', 'x') }),
      ],
      ['a name that is too long', 'write_file', (path) => ({ path: path('x'.repeat(300)), content: 'x' })],
      [
        'a link that leads to itself',
        'write_file',
        (path) => ({ path: path('folder', 'loop'), content: 'x' }),
      ],
    ];

    beforeAll(() => {
      mkdirSync(server.path('folder'));
      writeFileSync(server.path('notes.txt'), 'one\ntwo\n');
      writeFileSync(server.path('other.txt'), 'other\n');
    });

    it.each(mistakes)('%s: %s', async (_, tool, args) => {
      const outside = server.path('out');
      const loop = server.path('folder', 'loop');
      const before = server.contents();
      symlinkSync('/etc', outside);
      symlinkSync('loop', loop);
      const call = args((...names) => server.path(...names)) as JsonValue;
      const reply = await server.call(tool, call as object);
      rmSync(outside);
      rmSync(loop);
      expect(reply.kind).toBe('tool_error');
      expect(classifyReply(reply, factsFor(tool, call).operation)).toEqual({
        means: 'rejected',
        rule: 0,
        trusted: true,
      });
      expect(server.contents()).toEqual(before);
    });
  });

  it('what was written is read back and found; what others wrote since is not taken for ours', async () => {
    const args = { path: server.path('plan.txt'), content: 'Friday → Monday\r\n\u{1f4c5}' };
    expect(await lookUp('write_file', args)).toEqual({ found: 'absent', count: 0 });
    const reply = await server.call('write_file', args);
    expect(classifyReply(reply, factsFor('write_file', args).operation)).toEqual({
      means: 'accepted',
      trusted: false,
    });
    expect(await readBack('write_file', args)).toEqual({ matches: true });
    expect(await lookUp('write_file', args)).toEqual({ found: 'present', count: 1, contentMatches: true });
    writeFileSync(args.path, 'somebody else');
    expect(await readBack('write_file', args)).toEqual({ matches: false });
    expect(await lookUp('write_file', args)).toEqual({
      found: 'inconclusive',
      count: 1,
      contentMatches: false,
    });
    rmSync(args.path);
    expect(await readBack('write_file', args)).toEqual({ matches: 'inconclusive' });
    expect(contracts[0]?.operations[0]?.lookups[0]?.proves.absent).toBe('nothing');
  });

  it('a path that cannot be read is not taken for one that is absent', async () => {
    expect((await lookUp('write_file', { path: '/etc/notes.txt', content: '' })).found).toBe('inconclusive');
    expect((await lookUp('create_directory', { path: '/etc/notes' })).found).toBe('inconclusive');
  });

  it('a folder that was made is read back and found, twice as well as once', async () => {
    const args = { path: server.path('deep', 'er') };
    expect(await lookUp('create_directory', args)).toEqual({ found: 'absent', count: 0 });
    for (let time = 0; time < 2; time++) {
      expect(classifyReply(await server.call('create_directory', args), undefined).means).toBe('accepted');
      expect(await readBack('create_directory', args)).toEqual({ matches: true });
      expect(await lookUp('create_directory', args)).toMatchObject({ found: 'present' });
    }
    rmSync(args.path, { recursive: true });
    writeFileSync(args.path, 'a file');
    expect(await readBack('create_directory', args)).toEqual({ matches: false });
  });

  it('a file that was moved stands at its new name, and the same move again is refused', async () => {
    const args = { source: server.path('draft.txt'), destination: server.path('final.txt') };
    writeFileSync(args.source, 'text');
    expect(classifyReply(await server.call('move_file', args), undefined).means).toBe('accepted');
    expect(await readBack('move_file', args)).toEqual({ matches: true });
    const again = classifyReply(await server.call('move_file', args), factsFor('move_file', args).operation);
    expect(again).toMatchObject({ means: 'rejected', trusted: true });
    rmSync(args.destination);
    expect(await readBack('move_file', args)).toEqual({ matches: 'inconclusive' });
  });

  it('a dry run is a read and changes nothing; the edit itself is a write', async () => {
    const path = server.path('edit.txt');
    writeFileSync(path, 'a\na\n');
    const args = { path, edits: [{ oldText: 'a', newText: 'b' }] };
    const dry = { ...args, dryRun: true };
    expect(factsFor('edit_file', dry)).toMatchObject({ class: 'read' });
    expect(factsFor('edit_file', { ...args, dryRun: false })).toMatchObject({ class: 'ordinary' });
    const before = server.contents();
    expect((await server.call('edit_file', dry)).kind).toBe('result');
    expect(server.contents()).toEqual(before);
    // Run again after its answer arrived, an edit is the next replacement, and at last refused: that is why it is free.
    await server.call('edit_file', args);
    expect(server.contents()[path]).toBe('b\na\n');
    await server.call('edit_file', args);
    expect(server.contents()[path]).toBe('b\nb\n');
    const third = classifyReply(await server.call('edit_file', args), factsFor('edit_file', args).operation);
    expect(third).toMatchObject({ means: 'rejected', trusted: true });
  });

  it.each([
    ['write_file', 'ENOSPC: no space left on device, write'],
    ['write_file', 'EIO: i/o error, write'],
    ['edit_file', 'MCP error -32602: Output validation error: Invalid structured content for tool edit_file'],
    ['create_directory', "ENOSPC: no space left on device, mkdir '/srv/a/b'"],
    ['move_file', 'The path was moved. Access denied - '],
  ])('an error that proves nothing stays one: %s, %s', (tool, text) => {
    const body = JSON.stringify({ content: [{ type: 'text', text }], isError: true });
    const { operation } = factsFor(tool, {});
    expect(classifyReply({ kind: 'tool_error', body }, operation)).toEqual({
      means: 'error',
      trusted: false,
    });
  });

  it('a success whose text begins like a refusal is none', () => {
    const body = JSON.stringify({
      content: [{ type: 'text', text: 'Access denied - is what the file says' }],
    });
    expect(classifyReply({ kind: 'result', body }, factsFor('write_file', {}).operation).means).toBe(
      'accepted',
    );
  });
});
