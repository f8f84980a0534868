import { describe, expect, it } from 'vitest';
import { blueprintOf } from '../../src/contracts/blueprint.ts';
import { findShippedBinding } from '../../src/contracts/catalogue.ts';
import { loadGatewaySetup } from '../../src/contracts/load.ts';
import { BINDING, CONFIG, CONTRACT, changed } from './texts.ts';

const PAUSES = { resumeWindow: 'PT96H', approvalLifetime: 'PT8H' };

function pageOf(config: string) {
  const files: { readonly [name: string]: string } = {
    'tasks.contract.yaml': CONTRACT,
    'tasks.binding.yaml': BINDING,
  };
  const setup = loadGatewaySetup(config, 'gateway.yaml', {
    readText: (name) => ({ text: files[name] ?? '' }),
  });
  if (!setup.ok) throw new Error(JSON.stringify(setup.problems));
  return blueprintOf({
    destination: setup.config.value.destination,
    contracts: setup.contracts.map(({ value }) => value),
    bindings: setup.bindings.map(({ value }) => value),
    config: setup.config.value,
    rules: [],
    pauses: PAUSES,
    today: '2026-12-01',
  });
}

function toolOf(page: ReturnType<typeof pageOf>, name: string) {
  const tool = page.tools.find((each) => each.tool === name);
  if (tool === undefined) throw new Error(`${name} is on the page.`);
  return tool;
}

describe('a page for one destination', () => {
  const page = pageOf(CONFIG);

  it('lists what only reads by name, and each kind of write by itself', () => {
    expect(page).toMatchObject({ destination: 'tasks-eu', mode: 'guard', reads: ['find_tasks', 'get_task'] });
    expect(page.tools.map(({ tool }) => tool)).toEqual(['create_task', 'purge_task', 'add_comment']);
  });

  it('says what makes a call the same, who approves, and what follows an unknown outcome', () => {
    expect(toolOf(page, 'create_task')).toMatchObject({
      class: 'ordinary',
      write: 'tasks/task.create, revision 3',
      identity:
        'project and title; an equal call of its run is answered with the first; its target is the slot {project}',
      approver: 'nobody on each call; after 50 writes within an hour a person is asked once whether to go on',
      owner: 'ops',
      guards: [],
    });
    expect(toolOf(page, 'create_task').afterUnknown[0]).toBe(
      'When the reply is lost, it is looked up by us by client reference, which changes nothing.',
    );
    expect(toolOf(page, 'purge_task').approver).toBe('its owner, on each call, with the passphrase');
    expect(toolOf(page, 'add_comment').afterUnknown).toEqual([
      'No contract describes it: nothing is looked up or repeated by us, and a person is asked.',
    ]);
  });

  it('says in words what is missing, and who has waived it', () => {
    expect(toolOf(page, 'create_task').gaps).toEqual(
      expect.arrayContaining([
        'For create_task no way back is agreed where nobody has acted on it (recovery.nobody_acted). Agree on one, or waive route_missing by name.',
        'Nobody is named who may stop create_task (may_stop).',
      ]),
    );
    const agreed = pageOf(
      `${CONFIG}owner: platform team
may_stop: [on-call]
recovery: {nobody_acted: cancel it, somebody_acted: ask whoever works on it}
waivers: [{what: route_missing, by: Mara, on: 2026-11-30, because: the pilot has one user}]
`,
    );
    const comment = toolOf(agreed, 'add_comment');
    expect(comment).toMatchObject({
      owner: 'platform team',
      mayStop: ['on-call'],
      recovery: { nobody_acted: 'cancel it' },
    });
    expect(comment.gaps).toEqual([
      'No contract describes add_comment.',
      expect.stringMatching(/recovery\.unknown.* Waived by Mara on 2026-11-30: the pilot has one user$/),
    ]);
  });

  it('follows the mode', () => {
    const strict = pageOf(changed(CONFIG, 'destination: tasks-eu', 'destination: tasks-eu\nmode: strict'));
    expect(toolOf(strict, 'create_task').approver).toBe('a person of this account, on each call (strict)');
  });
});

describe('a page of a shipped binding', () => {
  const shipped = findShippedBinding('server-github');

  it('has each row that tells calls apart, and the questions that are open', () => {
    if (shipped === undefined) throw new Error('It is shipped.');
    const page = blueprintOf({
      destination: 'server-github',
      contracts: [shipped.contract.value],
      bindings: [shipped.binding.value],
      rules: [],
      pauses: PAUSES,
      today: '2026-12-01',
    });
    const reviews = page.tools.filter(({ tool }) => tool === 'create_pull_request_review');
    expect(reviews.map(({ calls, class: toolClass }) => [calls, toolClass])).toEqual([
      ['with event: "APPROVE"', 'irreversible'],
      [undefined, 'ordinary'],
    ]);
    expect(page.reads).toContain('list_issues');
    expect(page.tools.every(({ gaps }) => gaps.some((gap) => gap.includes('has no owner')))).toBe(true);
  });

  it('is nothing for a name that is not shipped', () => {
    expect(findShippedBinding('../catalogue')).toBeUndefined();
  });
});
