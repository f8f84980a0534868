// The write that is measured: business parameters of about 450 bytes, with a key that no other write has.

const run = `${process.pid.toString(36)}${Date.now().toString(36)}`;
let made = 0;

export function nextKey() {
  made += 1;
  return `${run}-${String(made).padStart(8, '0')}`;
}

export function payload(key) {
  return {
    key,
    title: `Rotate edge certificate for zone ${key}`,
    assignee: 'mara@example.test',
    due: '2026-12-24',
    priority: 3,
    description:
      'Change request raised by the cutover agent after approval; bound to the exact reviewed action. '.repeat(
        2,
      ),
    labels: ['infra', 'agent', 'cutover'],
    links: ['CHG-1041', 'TASK-77'],
  };
}
