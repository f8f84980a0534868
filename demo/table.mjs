// The end of the demo on a terminal: a row for each story, what the caller was told below it, and what was not
// checked.

const WIDTH = 112;
const TOLD_MAX = 220;

export function printTable({ ok, stories, notChecked, faultsFired, seconds, hasGateway }) {
  const print = (line = '') => process.stdout.write(`${line}\n`);
  print();
  print(
    hasGateway
      ? '                                                                             records'
      : 'The same client with the same retries, and no Counterfoil between it and the destination.\n',
  );
  print(columns('', 'story', 'meant', 'held', hasGateway ? 'without*' : '', 'effect'));
  print('─'.repeat(WIDTH));
  for (const story of stories) {
    const { id, variant, title, expectedRecords, destinationRecords, withoutCounterfoil, effect } = story;
    const name = variant === undefined ? id : `${id} ${variant}`;
    print(
      columns(story.ok ? '✓' : '✗', name, expectedRecords, destinationRecords, withoutCounterfoil ?? '', effect ?? 'nobody knows'),
    );
    for (const line of wrapped(title, WIDTH - 6)) print(`    ${line}`);
    if (hasGateway) {
      print(`    evidence: ${story.evidence.join(', ')}`);
      for (const line of wrapped(`told: ${toldWords(story.told)}`, WIDTH - 6)) print(`    ${line}`);
    }
    for (const problem of story.problems) for (const line of wrapped(`✗ ${problem}`, WIDTH - 6)) print(`    ${line}`);
    print();
  }
  if (hasGateway) print('* records that the same client makes with the same retries when no Counterfoil stands between.\n');
  print('What was not checked here');
  for (const sentence of notChecked) for (const [index, line] of wrapped(sentence, WIDTH - 4).entries()) print(`${index === 0 ? '  – ' : '    '}${line}`);
  print();
  const good = stories.filter((story) => story.ok).length;
  print(`${good} passed, ${stories.length - good} failed: ${ok ? 'every count and every answer was as meant' : 'see ✗'} (${faultsFired} faults fired, ${seconds} s)`);
}

function columns(mark, story, meant, held, without, effect) {
  return `${mark.padEnd(2)}  ${story.padEnd(62)} ${String(meant).padStart(5)} ${String(held).padStart(5)} ${String(without).padStart(9)}   ${effect}`;
}

/** The last answer, shortened; where there were several, how many came before it. */
function toldWords(answers) {
  if (answers.length === 0) return 'nothing';
  const texts = [...new Set(answers)];
  const last = shortened(answers.at(-1));
  if (answers.length === 1) return last;
  if (texts.length === 2 && answers.length === 2) return `${shortened(answers[0], 80)}  then: ${last}`;
  return `(${answers.length} answers, the last:) ${last}`;
}

function shortened(text, max = TOLD_MAX) {
  const plain = text.replaceAll(/op_[0-9A-Z]{20,}/g, (id) => `op_…${id.slice(-4)}`);
  return plain.length <= max ? plain : `${plain.slice(0, max).replace(/\s+\S*$/, '')} …`;
}

function wrapped(text, width) {
  const lines = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
