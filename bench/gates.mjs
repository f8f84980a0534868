// The limits that a run must keep, and how they are said.

/**
 * @param {string} name
 * @param {number | boolean | undefined} value `undefined`: there is no verdict, which does not pass
 * @param {{ atLeast?: number, atMost?: number, because?: string }} limit none: the value itself must be true.
 *   `because`: why there is no verdict
 */
export function gate(name, value, { atLeast, atMost, because } = {}) {
  const limit = atLeast ?? atMost;
  let passed = value === true;
  if (typeof value === 'number') passed = atLeast === undefined ? value <= atMost : value >= atLeast;
  return {
    name,
    passed,
    ...(value === undefined ? { because } : { value }),
    ...(limit === undefined ? {} : { [atLeast === undefined ? 'atMost' : 'atLeast']: limit }),
  };
}

export function inWords({ name, passed, value, atLeast, atMost, because }) {
  const verdict = passed ? 'passed' : 'FAILED';
  if (value === undefined) return `${verdict}  ${name}: no verdict, ${because}`;
  if (typeof value === 'boolean') return `${verdict}  ${name}`;
  const limit = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`;
  return `${verdict}  ${name}: ${value} (${limit})`;
}

export function countLine(gates) {
  const passed = gates.filter((one) => one.passed).length;
  return `${passed} passed, ${gates.length - passed} failed`;
}
