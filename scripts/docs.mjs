// Writes the documents that are made from data: docs/promises.md from the manifest, docs/states.md from the core's
// table of stages, docs/bindings.md from the shipped bindings and contracts, docs/repeats.md from what the core answers for
// each write of the shipped contracts. `--check` writes nothing and fails where a document has drifted; a test does the same.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isProgram, ROOT } from './processes.mjs';
import { setUpOrExit } from './setup.mjs';

const NOTE = '<!-- Made by "node scripts/docs.mjs": change its source, not this file. -->';

/**
 * @param {string} root the checkout
 * @param {object} lifecycle the module src/core/lifecycle.ts, or what it was compiled to
 * @param {object} answerTable the module src/contracts/answer-table.ts, or what it was compiled to
 * @returns {Map<string, string>} file, from the checkout → text
 */
export function renderDocuments(root, lifecycle, answerTable) {
  const manifest = JSON.parse(readFileSync(join(root, 'test/house/promises.json'), 'utf8'));
  return new Map([
    ['docs/promises.md', renderPromises(manifest, readTestTexts(root))],
    ['docs/states.md', renderStates(lifecycle)],
    ['docs/bindings.md', renderBindings(readCatalogue(root))],
    ['docs/repeats.md', renderRepeats(answerTable)],
  ]);
}

// ── Promises ───────────────────────────────────────────────────────────────────────────────────────────────

/** @param {Map<string, string>} tests file → text; that a citation is a title of a test, the gate checks */
export function renderPromises({ rows }, tests) {
  const parts = rows.flatMap(({ id, variants, ...row }) => variants ?? [{ id, ...row }]);
  const count = (state) => parts.filter((part) => part.state === state).length;
  const lines = [
    NOTE,
    '# Promises',
    '',
    'Each row is a story and what must be shown for it: above all the number of records that the destination holds, from',
    'its own log, beside what the caller was told. A row with letters is kept in parts, and stands where its lowest part does.',
    '',
    '- **planned**: not claimed. Nothing is said about it.',
    '- **core**: shown through a real door, counted at the destination, on every store that exists.',
    '- **kept**: core, and API, command line and console tell the same.',
    '',
    `Of ${parts.length} rows and parts, ${count('kept')} are kept, ${count('core')} core and ${count('planned')} planned.`,
    'A claim without a test that cites it fails the tests (`test/house/promises.test.ts`); the state is set in',
    '`test/house/promises.json`.',
    '',
    '| row | story | must show | state | shown by |',
    '|---|---|---|---|---|',
  ];
  for (const row of rows) {
    const state = row.state ?? lowestState(row.variants);
    lines.push(tableRow([row.id, row.story, row.shows, state, row.variants ? '' : shownBy(row, tests)]));
    for (const part of row.variants ?? []) {
      lines.push(tableRow([part.id, `… ${part.story}`, '', part.state, shownBy(part, tests)]));
    }
  }
  return `${lines.join('\n')}\n`;
}

function lowestState(variants) {
  const order = ['planned', 'core', 'kept'];
  return order[Math.min(...variants.map(({ state }) => order.indexOf(state)))];
}

function shownBy({ id, state }, tests) {
  if (state === 'planned') return '';
  return [...tests]
    .filter(([, text]) => text.includes(`[${id}]`))
    .map(([file]) => `\`${file}\``)
    .join('<br>');
}

/** The tests of the house are left out: what they cite is planted. */
function readTestTexts(root) {
  const files = readdirSync(join(root, 'test'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => [relative(root, file).split(sep).join('/'), readFileSync(file, 'utf8')])
    .filter(([file]) => !file.startsWith('test/house/'));
  return new Map(files.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

// ── States ─────────────────────────────────────────────────────────────────────────────────────────────────

export function renderStates({ STAGES, EFFECTS, RESOLUTIONS, STAGE_EFFECTS, TRANSITIONS }) {
  const mark = (stage, effect) => {
    if (STAGE_EFFECTS[stage].always.includes(effect)) return 'yes';
    return STAGE_EFFECTS[stage].bySomebody.includes(effect) ? 'by a person' : '';
  };
  const events = Object.entries(TRANSITIONS);
  const lines = [
    NOTE,
    '# States',
    '',
    'An operation has three columns that are never mixed: its **stage** (where is the work?), its **effect** (what is known',
    'of it at the destination?) and its **resolution** (what has a person stated?). Only evidence changes the effect; time,',
    'restarts, cancelling and statements do not.',
    '',
    `Resolutions: ${RESOLUTIONS.map((each) => `\`${each}\``).join(', ')}.`,
    '',
    '## Which effects a stage may show',
    '',
    '*by a person*: only where a named person’s act stands behind it, an order to send again after “it did not happen” or the',
    'closing of what is not known.',
    '',
    tableRow(['stage', ...EFFECTS.map((effect) => `\`${effect}\``)]),
    tableRow(['---', ...EFFECTS.map(() => '---')]),
    ...STAGES.map((stage) => tableRow([`\`${stage}\``, ...EFFECTS.map((effect) => mark(stage, effect))])),
    '',
    '## How an operation moves',
    '',
    '```mermaid',
    'stateDiagram-v2',
    ...diagramLines(events),
    '```',
    '',
    ...anywhereLines(events),
    '',
    tableRow(['event', 'may follow at', 'leads to']),
    tableRow(['---', '---', '---']),
    ...events.map(([event, { from, to }]) => tableRow([`\`${event}\``, fromInWords(from), toInWords(to)])),
  ];
  return `${lines.join('\n')}\n`;
}

function diagramLines(events) {
  const labels = new Map();
  for (const [event, { from, to }] of events) {
    if (to === 'same' || from === 'any') continue;
    for (const stage of from === 'none' ? ['[*]'] : from) {
      const arrow = `${stage} --> ${to}`;
      labels.set(arrow, [...(labels.get(arrow) ?? []), event]);
    }
  }
  return [...labels].map(([arrow, names]) => `    ${arrow} : ${names.join(' / ')}`);
}

function anywhereLines(events) {
  const named = (wanted) =>
    events
      .filter(([, event]) => wanted(event))
      .map(([name]) => `\`${name}\``)
      .join(', ');
  return [
    `Not drawn, because they may follow at every stage: ${named(({ from, to }) => from === 'any' && to !== 'same')}.`,
    `These leave the stage as it is: ${named(({ to }) => to === 'same')}.`,
  ];
}

function fromInWords(from) {
  if (from === 'none') return 'nothing yet';
  return from === 'any' ? 'every stage' : from.map((stage) => `\`${stage}\``).join(', ');
}

function toInWords(to) {
  return to === 'same' ? 'the same stage' : `\`${to}\``;
}

function tableRow(cells) {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

// ── Bindings ───────────────────────────────────────────────────────────────────────────────────────────────

const CATALOGUE = 'src/contracts/catalogue';
const CLASSES = ['read', 'ordinary', 'irreversible', 'interactive'];

/** The shipped bindings, each with the contract that it names. They are read by what set-up has installed. */
function readCatalogue(root) {
  const { parse } = createRequire(join(root, 'package.json'))('yaml');
  const read = (file) => parse(readFileSync(join(root, CATALOGUE, file), 'utf8'));
  return readdirSync(join(root, CATALOGUE))
    .filter((file) => file.endsWith('.binding.yaml'))
    .toSorted()
    .map((file) => {
      const binding = read(file);
      return { binding, contract: read(`${binding.contract}.contract.yaml`) };
    });
}

/** @param {{ binding: object, contract: object }[]} catalogue */
export function renderBindings(catalogue) {
  const lines = [
    NOTE,
    '# Bindings that are shipped',
    '',
    'For these MCP servers it is known what their tools are: which only read, on which objects the others act, which of',
    'their errors prove that nothing was changed, and how a write is found again whose reply was lost. All of it is data',
    `in \`${CATALOGUE}\`, each fact with its source; how to write such files for a server of your own is told in`,
    '[writing-a-binding.md](writing-a-binding.md).',
    '',
    'A binding counts for the tools that were measured, by the digest of each. A tool that is another one by now is asked',
    'about; the others go on.',
    '',
    tableRow(['package', 'measured', 'calls itself', 'tools', ...CLASSES, 'looked up', 'read back']),
    tableRow(['---', '---', '---', ...Array(CLASSES.length + 3).fill('---:')]),
    ...catalogue.map((each) => tableRow(summaryOf(each))),
    '',
    'A tool that has conditions is counted under the class of its other calls. *Looked up* and *read back* count kinds of',
    'writes; for the others the contract says why not, and a lost reply is put before a person.',
    ...catalogue.flatMap(detailsOf),
  ];
  return `${lines.join('\n')}\n`;
}

function summaryOf({ binding, contract }) {
  const tools = new Map(binding.tools.map((row) => [row.tool, row.class]));
  const classes = [...tools.values()];
  const kinds = contract.operations;
  const [{ package: name }] = binding.measured;
  const versions = [binding.server.versions].flat().map((version) => (version === '*' ? '' : ` ${version}`));
  return [
    `[${name}](#${binding.id})`,
    binding.measured.map(({ version, on }) => `${version}, ${on}`).join('<br>'),
    `${binding.server.name.join(', ')}${versions.join(',')}`,
    tools.size,
    ...CLASSES.map((each) => classes.filter((one) => one === each).length),
    `${kinds.filter(({ lookups }) => lookups.length > 0).length} of ${kinds.length}`,
    `${kinds.filter(({ readback }) => readback !== undefined).length} of ${kinds.length}`,
  ].map(String);
}

function detailsOf({ binding, contract }) {
  const notes = binding.measured.flatMap(({ note }) => note ?? []);
  const questions = contract.operations.flatMap(({ id, open_questions: open = [] }) =>
    open.map((each) => `- \`${id}\`: ${each}`),
  );
  const irreversible = binding.tools.filter((row) => row.class === 'irreversible');
  const corrected = binding.tools.filter((row) => row.corrects !== undefined);
  return [
    ...['', `## ${binding.id}`],
    ...notes.flatMap((note) => ['', note]),
    ...listOf('Irreversible, each waiting for a person', irreversible, (row) => row.reason),
    ...listOf('Told apart by arguments', conditionalRows(binding), (row) => row.class),
    ...listOf('Hints of the server that are corrected', corrected, correctionOf),
    ...(questions.length === 0 ? [] : ['', 'Not known, or not seen:', '', ...questions]),
  ];
}

function conditionalRows({ tools }) {
  const isConditional = ({ when, unless }) => when !== undefined || unless !== undefined;
  return tools.filter((row) => isConditional(row) && row.class !== 'irreversible');
}

function correctionOf({ class: ours, corrects, reason }) {
  const hints = Object.entries(corrects).map(([hint, value]) => `\`${hint}: ${value}\``);
  return `${hints.join(', ')} beside *${ours}*.${reason === undefined ? '' : ` ${reason}`}`;
}

function listOf(heading, rows, sentence) {
  if (rows.length === 0) return [];
  return ['', `${heading}:`, '', ...rows.map((row) => `- ${calledWith(row)}: ${sentence(row)}`)];
}

function calledWith({ tool, when = {}, unless = [] }) {
  const wanted = Object.entries(when).map(([name, value]) => `\`${name}: ${JSON.stringify(value)}\``);
  return [
    `\`${tool}\``,
    ...(wanted.length === 0 ? [] : [`with ${wanted.join(', ')}`]),
    ...(unless.length === 0 ? [] : [`without ${unless.map((name) => `\`${name}\``).join(', ')}`]),
  ].join(' ');
}

// ── Repeats ────────────────────────────────────────────────────────────────────────────────────────────────

export function renderRepeats({ SITUATIONS, shippedAnswers }) {
  const rows = shippedAnswers();
  const contracts = [...new Set(rows.map(({ contract }) => contract))];
  const lines = [
    NOTE,
    '# What happens after each outcome',
    '',
    'The answer of the one algorithm for each write of the shipped contracts, in each situation that can follow it. It is',
    'asked of the core itself, which names no destination: everything comes from the facts in `src/contracts/catalogue`.',
    '`counterfoil contract check ID` says the same in sentences.',
    '',
    '- **again**: sent again by us, the same bytes, within the bounds of tries and time; in brackets the guard of the',
    '  destination that makes it harmless, should the first try have happened after all.',
    '- **look up**, **read back**, **ask**: something is read; nothing is sent.',
    '- **done**, **rejected**, **error**: closed, and not sent again by us.',
    '- **person**: nothing is sent by us; a person decides, and is told why.',
    '- **–**: cannot arise here: no reply is known to refuse it on evidence that counts, there is no look-up that we can',
    '  ask, or no window by the clock.',
    '',
    'The situations: *not sent*, proven never to have left · *refused for now* and *refused*, by an outcome of the contract ·',
    '*error*, one that no outcome names · *lost*, no reply, and not looked up yet · *found*, by a look-up · *cannot tell*, what',
    'the look-up gave · *not found, early*, while it may still land · *not found, late*, after everything must have landed ·',
    '*two found* · *window over*, no reply, and nobody could act until the time was over for which a guard promises to know its',
    'value · *overdue*, no reply, a day after the contract was to be reviewed.',
    '',
    ...contracts.flatMap((contract) => [
      `## ${contract.id}`,
      '',
      tableRow(['write', ...Object.values(SITUATIONS)]),
      tableRow(['---', ...Object.values(SITUATIONS).map(() => '---')]),
      ...rows
        .filter((row) => row.contract === contract)
        .map(({ answers, operation }) => tableRow([`\`${operation.id}\``, ...answers.map(answerCell)])),
      '',
    ]),
  ];
  return `${lines.join('\n').trimEnd()}\n`;
}

const STEP_CELLS = { send_again: 'again', look_up: 'look up', ask_again: 'ask', read_back: 'read back' };
const EFFECT_CELLS = { accepted: 'done', verified: 'done', rejected: 'rejected', error_reported: 'error' };
const REASONS = {
  no_lookup: 'no look-up',
  lookups_exhausted: 'absence proves nothing',
  absent_needs_decision: 'absent, prepared',
  contradiction: 'two records',
};

function answerCell({ effect, step }) {
  if (step === undefined) return '–';
  if (step.step === 'close') return EFFECT_CELLS[effect] ?? `closed, ${effect}`;
  if (step.under !== undefined) return `again (${step.under.replaceAll('_', ' ')})`;
  if (step.step !== 'park') return STEP_CELLS[step.step] ?? step.step.replaceAll('_', ' ');
  return `person (${REASONS[step.why.code] ?? step.why.code.replaceAll('_', ' ')})`;
}

// ── Program ────────────────────────────────────────────────────────────────────────────────────────────────

if (isProgram(import.meta.url)) {
  await setUpOrExit();
  const lifecycle = await import(pathToFileURL(join(ROOT, 'dist/core/lifecycle.js')).href);
  const answerTable = await import(pathToFileURL(join(ROOT, 'dist/contracts/answer-table.js')).href);
  const isCheck = process.argv.includes('--check');
  for (const [file, text] of renderDocuments(ROOT, lifecycle, answerTable)) {
    if (readOrEmpty(join(ROOT, file)) === text) continue;
    if (isCheck) {
      process.stderr.write(`${file} has drifted from its source: run "node scripts/docs.mjs".\n`);
      process.exitCode = 1;
    } else {
      writeFileSync(join(ROOT, file), text);
      process.stdout.write(`wrote ${file}\n`);
    }
  }
}

function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
