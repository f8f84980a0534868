import { describe, expect, it } from 'vitest';
import { loadGatewaySetup, type ReadText } from '../../src/contracts/load.ts';
import { formatProblem } from '../../src/contracts/problem.ts';
import { BINDING, CONFIG, CONTRACT, changed, positionIn } from './texts.ts';

interface Texts {
  readonly config: string;
  readonly contract: string;
  readonly binding: string;
  readonly other?: string;
}

const RIGHT: Texts = { config: CONFIG, contract: CONTRACT, binding: BINDING };

function loadSetup(texts: Texts) {
  const files: { readonly [file: string]: string | undefined } = {
    'tasks.contract.yaml': texts.contract,
    'tasks.binding.yaml': texts.binding,
    'other.yaml': texts.other,
  };
  const readText: ReadText = (file) => {
    const text = files[file];
    return text === undefined ? { reason: 'there is no such file' } : { text };
  };
  return loadGatewaySetup(texts.config, 'gateway.yaml', { readText, today: '2026-12-01' });
}

function said(texts: Texts): string[] {
  const loaded = loadSetup(texts);
  return loaded.ok ? [] : loaded.problems.map(formatProblem);
}

function withTools(declarations: string): Texts {
  return { ...RIGHT, config: changed(CONFIG, 'tools:\n', `tools:\n  ${declarations}\n`) };
}

describe('loadGatewaySetup', () => {
  it('gives a configuration with its contracts and bindings, checked together', () => {
    expect(loadSetup(RIGHT)).toMatchObject({
      ok: true,
      config: { value: { destination: 'tasks-eu' } },
      contracts: [{ value: { id: 'tasks' } }],
      bindings: [{ value: { id: 'tasks-server' } }],
      notes: [],
    });
  });

  it('passes on the notes of its contracts', () => {
    const contract = changed(CONTRACT, '2027-05-01', '2026-11-30');
    const loaded = loadSetup({ ...RIGHT, contract });
    expect(loaded.ok && loaded.notes.map(formatProblem)).toEqual([
      expect.stringContaining('tasks.contract.yaml:5:61: note: tasks was to be reviewed by 2026-11-30'),
    ]);
  });

  it('names the file that cannot be read, at the place where it is named', () => {
    const config = changed(CONFIG, 'tasks.binding.yaml', 'missing.yaml');
    expect(said({ ...RIGHT, config })).toEqual([
      `gateway.yaml:${positionIn(config, 'missing.yaml')}: The file missing.yaml cannot be read: there is no such file.`,
    ]);
  });

  it('tells the faults of the named files, each in its own file', () => {
    const contract = changed(CONTRACT, 'effect: create', 'effect: make');
    const binding = changed(BINDING, 'revision: 1', 'revison: 1');
    expect(said({ ...RIGHT, contract, binding })).toEqual([
      expect.stringMatching(/^tasks\.contract\.yaml:9:13: operations\[0\]\.effect/),
      expect.stringMatching(/^tasks\.binding\.yaml:3:1: The key "revison"/),
    ]);
  });
});

describe('contradictions between files', () => {
  it.each<[string, Texts, string, string]>([
    [
      'a binding for a contract that is not loaded',
      { ...RIGHT, binding: changed(BINDING, 'contract: tasks', 'contract: notes') },
      'tasks.binding.yaml:4:11',
      'The binding tasks-server names the contract notes, which is not loaded; loaded is tasks.',
    ],
    [
      'a binding to an operation that does not exist',
      { ...RIGHT, binding: changed(BINDING, 'operation: task.create', 'operation: task.creat') },
      'tasks.binding.yaml:11:36',
      'create_task is mapped to the operation task.creat, which the contract tasks does not have (did you mean task.create?).',
    ],
    [
      'a tool that the contract states for another one',
      { ...RIGHT, contract: changed(CONTRACT, 'match: [purge_task]', 'match: [delete_task]') },
      'tasks.binding.yaml:12:12',
      'purge_task is mapped to task.purge, which the contract tasks states for delete_task.',
    ],
    [
      'a binding below the floor',
      { ...RIGHT, binding: changed(BINDING, 'class: irreversible', 'class: ordinary') },
      'tasks.binding.yaml:12:54',
      'purge_task is declared ordinary, and the contract tasks states that task.purge is destructive and has no reversal; such a write is irreversible and waits for a person each time.',
    ],
    [
      'a look-up through a tool that is no known read',
      { ...RIGHT, binding: changed(BINDING, '  - {tool: find_tasks, class: read}\n', '') },
      'tasks.binding.yaml:10:36',
      'A look-up of task.create asks through find_tasks, and the binding tasks-server does not list that call as a read.',
    ],
    [
      'a read-back through a tool that writes',
      { ...RIGHT, contract: changed(CONTRACT, 'name: get_task,', 'name: purge_task,') },
      'tasks.binding.yaml:11:36',
      'A read-back of task.create asks through purge_task, and the binding tasks-server does not list that call as a read.',
    ],
    [
      'two bindings for one server',
      {
        ...RIGHT,
        config: changed(CONFIG, '[tasks.binding.yaml]', '[tasks.binding.yaml, other.yaml]'),
        other: changed(changed(BINDING, 'id: tasks-server', 'id: second'), "'>=1.2 <2'", "['1.5.0']"),
      },
      'other.yaml:5:9',
      'The bindings second and tasks-server (tasks.binding.yaml) are for the same server; only one can count.',
    ],
    [
      'two contracts of one name',
      {
        ...RIGHT,
        config: changed(CONFIG, '[tasks.contract.yaml]', '[tasks.contract.yaml, other.yaml]'),
        other: CONTRACT,
      },
      'other.yaml:2:5',
      'This contract and tasks.contract.yaml are both called tasks; each needs a name of its own.',
    ],
    [
      'an irreversible write declared ordinary',
      withTools('purge_task: {class: ordinary}'),
      'gateway.yaml:5:23',
      'purge_task is declared ordinary, and the contract tasks states that task.purge is destructive and has no reversal; such a write is irreversible and waits for a person each time.',
    ],
    [
      'a write that its binding calls irreversible, declared ordinary',
      {
        ...withTools('create_task: {class: ordinary}'),
        binding: changed(BINDING, 'task.create, class: ordinary', 'task.create, class: irreversible'),
      },
      'gateway.yaml:5:24',
      'create_task is declared ordinary, and the binding tasks-server declares it irreversible; that is not lowered.',
    ],
    [
      'a write declared a read',
      withTools('create_task: {class: read}'),
      'gateway.yaml:5:24',
      'create_task is declared a read, and it is mapped to the write task.create of the contract tasks.',
    ],
    [
      'an operation of a contract that is not loaded',
      withTools('erase: {contract_operation: notes/note.erase}'),
      'gateway.yaml:5:31',
      'erase is declared to be notes/note.erase, of the contract notes, which is not loaded; loaded is tasks.',
    ],
    [
      'an operation that its contract does not have',
      withTools('erase: {contract_operation: tasks/task.erase}'),
      'gateway.yaml:5:31',
      'erase is declared to be the operation task.erase, which the contract tasks does not have (did you mean task.create?).',
    ],
    [
      'an irreversible operation named in the configuration and declared ordinary',
      withTools('erase: {class: ordinary, contract_operation: tasks/task.purge}'),
      'gateway.yaml:5:18',
      'erase is declared ordinary, and the contract tasks states that task.purge is destructive and has no reversal; such a write is irreversible and waits for a person each time.',
    ],
    [
      'an identity of ours that leaves out the target of the contract',
      withTools('create_task: {identity: [title]}'),
      'gateway.yaml:5:27',
      'The identity of create_task leaves out the argument project, which names its target; calls for two targets would be taken for one.',
    ],
    [
      'an identity of ours with the stamp of the contract',
      withTools('create_task: {identity: [project, reference]}'),
      'gateway.yaml:5:37',
      'The identity of create_task holds reference, and the stamp fills reference; what we fill ourselves cannot tell calls apart.',
    ],
    [
      'a resume window below what a unique tool needs',
      { ...RIGHT, config: changed(CONFIG, 'resume_window: PT96H', 'resume_window: P2D') },
      'gateway.yaml:7:16',
      'resume_window is P2D, and the unique tool add_comment answers an equal call of its run with the earlier one for PT96H; at least PT96H is allowed while a tool is unique.',
    ],
  ])('%s', (_, texts, at, sentence) => {
    expect(said(texts)).toEqual([`${at}: ${sentence}`]);
  });

  it('lets the owner declare more than the binding does', () => {
    expect(said(withTools('create_task: {class: irreversible}'))).toEqual([]);
  });

  it('lets two bindings for one server stand whose versions never meet', () => {
    const config = changed(CONFIG, '[tasks.binding.yaml]', '[tasks.binding.yaml, other.yaml]');
    const other = changed(changed(BINDING, 'id: tasks-server', 'id: second'), "'>=1.2 <2'", "'2.x'");
    expect(said({ ...RIGHT, config, other })).toEqual([]);
  });

  it('allows a short resume window where no tool is unique', () => {
    const config = changed(
      changed(
        changed(CONFIG, 'repeat: unique', 'repeat: free'),
        'tools:\n',
        'tools:\n  create_task: {repeat: state}\n',
      ),
      'resume_window: PT96H',
      'resume_window: PT1H',
    );
    expect(said({ ...RIGHT, config })).toEqual([]);
  });

  it('counts a unique tool of a binding, which the configuration does not name', () => {
    const config = changed(
      changed(CONFIG, 'repeat: unique', 'repeat: free'),
      'resume_window: PT96H',
      'resume_window: PT95H59M',
    );
    expect(said({ ...RIGHT, config })).toEqual([expect.stringContaining('the unique tool create_task')]);
  });

  it('allows a look-up through a tool that the owner declares a read', () => {
    const texts = withTools('find_tasks: {class: read}');
    const binding = changed(BINDING, '  - {tool: find_tasks, class: read}\n', '');
    expect(said({ ...texts, binding })).toEqual([]);
  });
});
