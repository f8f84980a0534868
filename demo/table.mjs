// The end of the demo on a terminal: a row for each story, below it how its effect is known and what the caller
// was told; then what was not checked.

const WIDTH = 114;
const TITLE = 66;
const TOLD_MAX = 230;

export function printTable({ ok, stories, notChecked, faultsFired, seconds, hasGateway }) {
  const print = (line = '') => process.stdout.write(`${line}\n`);
  print();
  print(
    hasGateway
      ? "The records are counted in the destination's own log, after every process had ended."
      : 'The same client with the same retries, and nothing between it and the destination.',
  );
  print();
  if (hasGateway) print(row('', '', '', 'records', '', ''));
  print(row('', 'story', 'meant', 'held', hasGateway ? 'without*' : '', 'effect'));
  print('─'.repeat(WIDTH));
  for (const story of stories) {
    for (const line of linesOf(story, hasGateway)) print(line);
    print();
  }
  if (hasGateway) print('* made by the same client with the same retries when nothing stands between.\n');
  if (hasGateway) {
    print('What was not checked here');
    for (const sentence of notChecked) for (const line of hanging('  – ', sentence)) print(line);
    print();
  }
  const passed = stories.filter((story) => story.ok).length;
  print(
    `${passed} passed, ${stories.length - passed} failed (${faultsFired} faults fired, ${seconds} s)${ok ? '' : ': see ✗ above'}`,
  );
}

function linesOf(story, hasGateway) {
  const {
    id,
    title,
    expectedRecords,
    destinationRecords,
    withoutCounterfoil = '–',
    effect,
    evidence,
    told,
  } = story;
  const lines = [
    row(
      story.ok ? '✓' : '✗',
      `${id.padEnd(8)} ${title}`,
      expectedRecords,
      destinationRecords,
      hasGateway ? withoutCounterfoil : '',
      effect ?? 'nobody knows',
    ),
  ];
  if (hasGateway) {
    lines.push(
      ...hanging(
        '           evidence  ',
        evidence.length === 0 ? 'none needed: nothing was sent' : evidence.join(', '),
      ),
    );
    lines.push(...hanging('           told      ', toldWords(told)));
  }
  for (const problem of story.problems) lines.push(...hanging('         ✗ ', problem));
  return lines;
}

function row(mark, story, meant, held, without, effect) {
  const cells = [
    mark.padEnd(1),
    story.padEnd(TITLE + 9),
    ...[meant, held].map((cell) => String(cell).padStart(5)),
  ];
  return `${cells.join(' ')} ${String(without).padStart(9)}  ${effect}`.trimEnd();
}

/** The last answer, shortened; two different ones both. */
function toldWords(answers) {
  const last = answers.at(-1);
  if (last === undefined) return 'nothing';
  if (answers.length === 1) return shortened(last);
  if (answers.length === 2) return `${shortened(answers[0], 90)} Then: ${shortened(last, TOLD_MAX - 90)}`;
  return `(the last of ${answers.length}) ${shortened(last)}`;
}

function shortened(text, max = TOLD_MAX) {
  const plain = text.replaceAll(/op_[0-9A-Z]{20,}/g, (id) => `op_…${id.slice(-4)}`);
  return plain.length <= max ? plain : `${plain.slice(0, max).replace(/\s+\S*$/, '')} …`;
}

/** Words wrapped behind a heading, the following lines below its end. */
function hanging(heading, text) {
  const lines = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && heading.length + line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].map(
    (words, index) => `${index === 0 ? heading : ' '.repeat(heading.length)}${words}`,
  );
}
