// One table: a row for each step when it is done, with what was found; then what was not checked, and the figures.

const TITLE = 46;

export class Steps {
  #isJson;
  #began = performance.now();
  rows = [];

  constructor({ isJson }) {
    this.#isJson = isJson;
    this.#print(`  ${'step'.padEnd(TITLE)}   took  found`);
  }

  #print(line) {
    if (!this.#isJson) process.stdout.write(`${line}\n`);
  }

  /**
   * Does one step. What it throws is a problem of this step, and the others go on.
   * @param {(expect: (holds: boolean, problem: string) => void) => Promise<string>} act gives what was found, in words
   */
  async step(title, act) {
    const since = performance.now();
    const problems = [];
    let found = '';
    try {
      found = await act((holds, problem) => {
        if (!holds) problems.push(problem);
      });
    } catch (error) {
      problems.push(`It could not be done: ${error.message}`);
    }
    const seconds = tenths(performance.now() - since);
    const ok = problems.length === 0;
    this.rows.push({ title, ok, found, problems, seconds });
    const took = `${seconds.toFixed(1)} s`.padStart(6);
    this.#print(`${ok ? '✓' : '✗'} ${title.padEnd(TITLE)} ${took}  ${found}`.trimEnd());
    for (const problem of problems) this.#print(`    ✗ ${problem}`);
  }

  end(notChecked) {
    const passed = this.rows.filter(({ ok }) => ok).length;
    const failed = this.rows.length - passed;
    const seconds = tenths(performance.now() - this.#began);
    if (this.#isJson) {
      const line = { ok: failed === 0, passed, failed, seconds, steps: this.rows, notChecked };
      process.stdout.write(`${JSON.stringify(line)}\n`);
      return failed === 0;
    }
    this.#print('\nWhat was not checked here');
    for (const sentence of notChecked) this.#print(`  – ${sentence}`);
    this.#print(`\n${passed} passed, ${failed} failed`);
    return failed === 0;
  }
}

function tenths(ms) {
  return Math.round(ms / 100) / 10;
}
