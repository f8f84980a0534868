// What is said of a story in the end, and every reason why it is not what was promised.

/**
 * @param scene the scene as it was written down, with its rows
 * @param index which of its rows
 * @param guarded what came of it through the gateway; absent when there was none
 * @param direct what came of it without one; absent where that was not acted
 */
export function judge(scene, index, guarded, direct) {
  const row = scene.rows[index];
  const acted = guarded ?? direct;
  const { records, answers, operations, problems: found } = acted.rows[index];
  const problems = [...found, ...(acted.problem === undefined ? [] : [acted.problem])];
  if (records !== row.expected) {
    problems.push(`The destination holds ${count(records, 'record')}; ${row.expected} meant.`);
  }
  if (guarded !== undefined) {
    problems.push(...judgeEffect(row, operations), ...judgeAnswers(row, answers));
    problems.push(...judgeFaults(scene, row, guarded, direct?.rows[index].records));
  }
  return {
    id: row.id,
    ...(row.variant === undefined ? {} : { variant: row.variant }),
    title: row.title,
    expectedRecords: row.expected,
    destinationRecords: records,
    ...(guarded === undefined || direct === undefined
      ? {}
      : { withoutCounterfoil: direct.rows[index].records }),
    effect: guarded === undefined ? null : effectOf(operations),
    evidence: evidenceOf(operations),
    told: answers,
    operations: operations.map((shown) => shown?.operation.id ?? null),
    ok: problems.length === 0,
    problems: counted(problems),
  };
}

function judgeEffect(row, operations) {
  const effect = effectOf(operations);
  return effect === row.effect ? [] : [`The ledger says ${effect}; ${row.effect} meant.`];
}

/** The caller was told the truth when each answer begins as it should. */
function judgeAnswers(row, answers) {
  const problems = [];
  if (answers.length !== row.told.length) {
    problems.push(`The caller was given ${count(answers.length, 'answer')}; ${row.told.length} meant.`);
  }
  for (const [index, answer] of answers.entries()) {
    const meant = [row.told[index] ?? []].flat();
    if (meant.length > 0 && !meant.some((pattern) => fits(answer, pattern))) {
      problems.push(`The caller was told: ${answer.slice(0, 160)} — meant: ${meant.join(' or ')}`);
    }
  }
  return problems;
}

/** Whether a text begins as a pattern does, in which `…` stands for any words. */
function fits(answer, pattern) {
  const [first, ...rest] = pattern.split('…');
  if (!answer.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = answer.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return true;
}

/** A story proves something only when its faults have happened, and only when they would have done harm. */
function judgeFaults(scene, row, guarded, made) {
  const problems = [];
  if (guarded.faultsFired !== scene.faults) {
    problems.push(`${count(guarded.faultsFired, 'fault')} fired; ${scene.faults} planned.`);
  }
  if (row.without !== undefined && made !== row.without) {
    problems.push(
      `Without Counterfoil: ${count(made ?? 0, 'record')}; ${row.without} foreseen, so that this proves nothing.`,
    );
  }
  return problems;
}

/** The effect of all operations of a row, where it is the same. */
function effectOf(operations) {
  const effects = new Set(operations.map((shown) => shown?.operation.effect ?? 'nothing recorded'));
  return effects.size === 0 ? 'nothing recorded' : [...effects].join(', ');
}

/** How the effect is known, in words, each once. */
function evidenceOf(operations) {
  const words = new Set();
  for (const shown of operations) {
    const decision = shown?.operation.review?.decision;
    if (decision !== undefined) words.add(`${decision.kind} by the ${decision.by}`);
    for (const piece of shown?.operation.evidence ?? []) words.add(evidenceWord(piece));
  }
  return [...words];
}

const NO_REPLY = {
  timeout: 'no reply in time',
  cut: 'connection cut',
  claim_lost: 'sender gone',
  abandoned: 'sender gone',
};

function evidenceWord(piece) {
  switch (piece.kind) {
    case 'transport':
      return piece.left === 'no' ? 'nothing left' : (NO_REPLY[piece.what] ?? 'reply lost');
    case 'acknowledgement':
      return piece.means === 'accepted' ? 'acknowledged' : `answered: ${piece.means}`;
    case 'lookup':
      return piece.found === 'present'
        ? 'found by look-up'
        : `looked up: ${piece.found.replaceAll('_', ' ')}`;
    case 'readback':
      return piece.matches === true ? 'read back' : 'read back, not equal';
    default:
      return piece.kind;
  }
}

/** Equal sentences once, with how often. */
function counted(sentences) {
  const times = new Map();
  for (const sentence of sentences) times.set(sentence, (times.get(sentence) ?? 0) + 1);
  return [...times].map(([sentence, number]) => (number === 1 ? sentence : `${sentence} (${number} times)`));
}

export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
