// The stories of the demo: what is done, how many records the destination should hold in the end, what the ledger
// should say of them, and with which words the caller should be answered. The ids are those of the promises.
//
// Each scene is acted twice: through the gateway, and by the same client with the same retries against the
// destination itself. `without` says how many records the second makes, which shows that the faults bite.

import { until, within } from './world.mjs';

const CHANGE = {
  service: 'billing',
  starts: '2026-12-05T22:00Z',
  description: 'Move the billing database to the new machine.',
};
const REWORDED = { ...CHANGE, description: 'Billing database: migration to its new host, as planned.' };
const SNAPSHOT = { database: 'billing', label: 'before the cutover' };
const OLD_MACHINE = { vm: 'vm-17', name: 'billing-db-old' };
const NEW_MACHINE = { vm: 'vm-18', name: 'billing-db-new' };
const RUN = { run: 'cutover billing 2026-12-05' };

/** The destination's own answers, unchanged. `…` stands for any words. */
const OWN_CHANGE = '{"id":"CHG-1042",';
const OWN_SNAPSHOT = '{"id":"SNAP-1",';
const ALREADY_EXISTS = 'ALREADY_EXISTS — …';

function dns(value) {
  return { name: 'db.billing.example.com', type: 'A', value };
}

// ── Scenes ───────────────────────────────────────────────────────────────────────────────────────────────────
// rows: what is told in the end. `records` counts what the destination holds; `told` is how the answers begin, in
// their order (a list: any of these). act: gives, for each row, the answers and the operations they were about.

const lostReply = {
  rows: [
    {
      id: 'S1',
      title: 'The change request is recorded, and the reply is lost',
      expected: 1,
      without: 2,
      effect: 'verified',
      told: [`${ALREADY_EXISTS}"CHG-1042"…found`],
      records: ({ length }) => length,
    },
  ],
  faults: 1,
  async act(world) {
    world.plan({ on: 'raise_change_request', do: 'lose_reply' });
    const agent = await world.agent();
    const answer = await agent.call('raise_change_request', CHANGE, {
      ...RUN,
      call: 'call-1',
      patienceMs: 1_000,
      tries: 6,
    });
    return [{ answers: [answer], operations: [answer.operation] }];
  },
};

const downAtFirst = {
  rows: [
    {
      id: 'S2',
      title: 'The destination is down at first, and comes back',
      expected: 1,
      without: 1,
      effect: 'verified',
      told: ['NOT SENT YET — waits for cutover to answer again', OWN_CHANGE],
      records: ({ length }) => length,
    },
  ],
  faults: 3,
  async act(world) {
    const agent = await world.agent();
    await agent.call('get_vm', { vm: OLD_MACHINE.vm });
    world.plan({ on: 'start', do: 'exit', times: 2 });
    await world.killDestination();
    const said = { ...RUN, call: 'call-1', patienceMs: 3_000, tries: 6 };
    const first = await agent.call('raise_change_request', CHANGE, said);
    if (!world.gateway) return [{ answers: [first], operations: [] }];
    await until(() => world.records().length > 0, 'the change request to be sent by itself');
    const second = await agent.call('raise_change_request', CHANGE, said);
    return [{ answers: [first, second], operations: [first.operation] }];
  },
};

const nobodyCanLook = {
  rows: [
    {
      id: 'S3',
      title: 'A message is posted, the reply is lost, and no look-up exists',
      expected: 1,
      without: 2,
      effect: 'unknown',
      told: ['OUTCOME UNKNOWN — with a person now'],
      records: ({ length }) => length,
    },
  ],
  faults: 1,
  async act(world) {
    world.plan({ on: 'notify_team', do: 'lose_reply' });
    const agent = await world.agent();
    const message = { channel: '#billing', text: 'The cutover begins at 22:00 UTC.' };
    const said = { ...RUN, call: 'call-1', patienceMs: 1_000, tries: 6 };
    const answer = await agent.call('notify_team', message, said);
    if (!world.gateway) return [{ answers: [answer], operations: [] }];
    const { json } = await world.counterfoil(['queue', '--json']);
    const isQueued = json.operations.some(({ operation }) => operation.id === answer.operation);
    const problems = isQueued ? [] : ['The operation is not in the queue of those who must look.'];
    return [{ answers: [answer], operations: [answer.operation], problems }];
  },
};

/** The gateway is killed at a point, its successor as soon as it has started; the third carries on. */
function killed(point, what) {
  return {
    rows: [
      {
        id: 'S4',
        variant: point,
        title: `SIGKILL at ${point} (${what}), two restarts`,
        expected: 1,
        effect: 'verified',
        told: [[`${ALREADY_EXISTS}"CHG-1042"`, OWN_CHANGE]],
        records: ({ length }) => length,
      },
    ],
    faults: 2,
    async act(world) {
      const first = await world.agent({ crashAt: point });
      const said = { ...RUN, call: 'call-1' };
      first.call('raise_change_request', CHANGE, said).catch(() => {});
      await within(first.lost, `the gateway to be killed at ${point}`);
      const kept = await world.show();
      const second = await world.agent();
      await second.kill();
      const third = await world.agent();
      const answer = await third.call('raise_change_request', CHANGE, said);
      const last = await world.show();
      const isSame = kept !== undefined && kept.operation.id === last?.operation.id;
      const problems = isSame
        ? []
        : ['The operation that was recorded before the kill is not the one afterwards.'];
      return [{ answers: [answer], operations: [last?.operation.id], problems }];
    },
  };
}

const threeKindsOfDuplicate = {
  rows: [
    {
      id: 'S16',
      variant: 'transport',
      title: "The client's patience ends, and it calls again",
      expected: 1,
      without: 2,
      effect: 'verified',
      told: [OWN_CHANGE],
      records: (all) => all.filter(({ service }) => service === 'billing').length,
    },
    {
      id: 'S16',
      variant: 'reasoning',
      title: 'The model misses that it is done, and asks in other words',
      expected: 1,
      without: 2,
      effect: 'verified',
      told: ['{"id":"CHG-1043",', `${ALREADY_EXISTS}"CHG-1043"…NOT applied: description`],
      records: (all) => all.filter(({ service }) => service === 'payments').length,
    },
    {
      id: 'S16',
      variant: 'A→B→A',
      title: 'DNS: new, old, new again; and once more by mistake',
      expected: 3,
      without: 4,
      effect: 'verified',
      told: [1, 2, 3]
        .map((version) => `{"name":"db.billing.example.com",…"version":${version}}`)
        .concat(ALREADY_EXISTS),
      records: (all) => all.filter(({ type }) => type === 'A').length,
    },
    {
      id: 'S16',
      variant: 'equal clicks',
      title: 'Five equal clicks, each of them meant',
      expected: 5,
      without: 5,
      effect: 'accepted',
      told: [1, 2, 3, 4, 5].map((clicks) => `{"button":"Next","clicks":${clicks}}`),
      records: (all) => all.filter(({ button }) => button === 'Next').length,
    },
  ],
  faults: 1,
  async act(world) {
    const agent = await world.agent();
    const operations = [];
    const call = async (...args) => {
      const answer = await agent.call(...args);
      operations.push(await newest(world));
      return answer;
    };

    world.plan({ on: 'raise_change_request', do: 'take', ms: 1_500 });
    const said = { ...RUN, call: 'call-1', patienceMs: 1_000, tries: 6 };
    const transport = [await call('raise_change_request', CHANGE, said)];

    const [asked, reworded] = [CHANGE, REWORDED].map((change) => ({ ...change, service: 'payments' }));
    const reasoning = [
      await call('raise_change_request', asked, { ...RUN, call: 'call-2' }),
      await call('raise_change_request', reworded, { ...RUN, call: 'call-3' }),
    ];

    const addresses = [];
    for (const [index, value] of ['10.0.0.18', '10.0.0.17', '10.0.0.18', '10.0.0.18'].entries()) {
      addresses.push(await call('update_dns_record', dns(value), { ...RUN, call: `call-${4 + index}` }));
    }
    const clicks = [];
    for (let count = 1; count <= 5; count += 1) {
      clicks.push(await call('click', { button: 'Next' }, { ...RUN, call: `call-${7 + count}` }));
    }
    return [
      { answers: transport, operations: operations.slice(0, 1) },
      { answers: reasoning, operations: operations.slice(1, 3) },
      { answers: addresses, operations: operations.slice(3, 7) },
      { answers: clicks, operations: operations.slice(7) },
    ];
  },
};

const slowSnapshot = {
  rows: [
    {
      id: 'S17',
      title: "The snapshot takes 3 s, the caller's patience ends after 2 s",
      expected: 1,
      without: 2,
      effect: 'verified',
      told: [OWN_SNAPSHOT],
      records: ({ length }) => length,
    },
  ],
  faults: 1,
  async act(world) {
    world.plan({ on: 'create_snapshot', do: 'take', ms: 3_000 });
    const agent = await world.agent();
    const said = { ...RUN, call: 'call-1', patienceMs: 2_000, tries: 6 };
    const answer = await agent.call('create_snapshot', SNAPSHOT, said);
    return [{ answers: [answer], operations: [await newest(world)] }];
  },
};

const SAME_AT_ONCE = 64;

const allAtOnce = {
  rows: [
    {
      id: 'S21',
      title: `${SAME_AT_ONCE} identical change requests at once`,
      expected: 1,
      without: SAME_AT_ONCE,
      effect: 'verified',
      told: Array.from({ length: SAME_AT_ONCE }, () => [OWN_CHANGE, `${ALREADY_EXISTS}"CHG-1042"`]),
      records: ({ length }) => length,
    },
  ],
  faults: 0,
  async act(world) {
    const agent = await world.agent();
    const calls = Array.from({ length: SAME_AT_ONCE }, (_, index) =>
      agent.call('raise_change_request', CHANGE, { ...RUN, call: `call-${index + 1}` }),
    );
    const answers = await Promise.all(calls);
    const named = new Set(answers.map(({ operation }) => operation));
    named.delete(undefined);
    const last = await newest(world);
    if (last !== undefined) named.add(last);
    return [{ answers, operations: [...named] }];
  },
};

const cutover = {
  rows: [
    {
      id: 'cutover',
      title: 'As planned: snapshot, change request, DNS, decommission',
      expected: 4,
      without: 4,
      effect: 'verified',
      told: [
        OWN_SNAPSHOT,
        OWN_CHANGE,
        '{"name":"db.billing.example.com","type":"A","value":"10.0.0.18",',
        "NOT SENT YET — waiting for a person's approval",
        '{"vm":"vm-17","name":"billing-db-old","state":"decommissioned"}',
      ],
      records: (all) => all.filter(({ vm }) => vm !== NEW_MACHINE.vm).length,
    },
    {
      id: 'S18',
      title: 'A replay of the approved decommission names another machine',
      expected: 0,
      without: 1,
      effect: 'not_sent',
      told: ["NOT SENT YET — waiting for a person's approval…vm-18", 'NOT SENT — denied by an approver'],
      records: (all) => all.filter(({ vm }) => vm === NEW_MACHINE.vm).length,
    },
  ],
  faults: 0,
  async act(world) {
    const agent = await world.agent();
    const operations = [];
    const steps = [
      ['create_snapshot', SNAPSHOT, { step: 'snapshot', single: true, call: 'call-1' }],
      ['raise_change_request', CHANGE, { step: 'change request', single: true, call: 'call-2' }],
      ['update_dns_record', dns('10.0.0.18'), { step: 'dns', call: 'call-3' }],
    ];
    const answers = [];
    for (const [tool, args, said] of steps) {
      answers.push(await agent.call(tool, args, { ...RUN, ...said }));
      operations.push(await newest(world));
    }
    const said = { ...RUN, step: 'decommission', single: true, call: 'call-4' };
    answers.push(await agent.call('decommission_vm', OLD_MACHINE, said));
    if (!world.gateway) {
      const replayed = await agent.call('decommission_vm', NEW_MACHINE, said);
      return [
        { answers, operations: [] },
        { answers: [replayed], operations: [] },
      ];
    }

    // The demo owner looks at what is asked, and decides on exactly that.
    const asked = await world.show();
    operations.push(asked.operation.id);
    await world.approve(asked.operation.id, asked.digest, 'demo owner');
    await agent.call('counterfoil_operation_status', { operation: asked.operation.id, wait_s: 10 });
    answers.push(await agent.call('decommission_vm', OLD_MACHINE, said));

    // After a restored checkpoint the same step comes again, and names another machine.
    const replayed = [await agent.call('decommission_vm', NEW_MACHINE, said)];
    const wrong = await world.show();
    const reason = 'vm-18 is the new machine.';
    await world.deny(wrong.operation.id, wrong.digest, 'demo owner', reason);
    replayed.push(await agent.call('decommission_vm', NEW_MACHINE, said));
    return [
      { answers, operations },
      { answers: replayed, operations: [wrong.operation.id] },
    ];
  },
};

async function newest(world) {
  return world.gateway ? (await world.show())?.operation.id : undefined;
}

/** The longest first, because they are acted side by side. */
export const SCENES = [
  killed('attempt_recorded', 'nothing has left'),
  threeKindsOfDuplicate,
  cutover,
  killed('bytes_left', 'the bytes have left'),
  killed('before_outcome_commit', 'reply unrecorded'),
  killed('outcome_recorded', 'nobody was answered'),
  downAtFirst,
  slowSnapshot,
  lostReply,
  nobodyCanLook,
  allAtOnce,
];

/** In which order the rows are told. */
export const ORDER = ['cutover', 'S1', 'S2', 'S3', 'S4', 'S16', 'S17', 'S18', 'S21'];

export const NOT_CHECKED = [
  'Software by others: the destination here is a program of ours, and its contract was read in its source.',
  'Power cuts, full or lying disks, and more than one machine: processes were killed, the kernel was not.',
  'That a person decided: the demo owner is a program, which types a passphrase that it has set (strength passphrase).',
  'Writes that go round the gateway: it cannot see them.',
  'Whether the message of S3 arrived: without a look-up that stays unknown until a person has looked.',
  'A model: the retries and the rewording were written down beforehand, and seconds stand for half minutes.',
  'Checkpoint replays by an agent framework, stops, cancelling, recovery, and several gateways on one ledger.',
];
