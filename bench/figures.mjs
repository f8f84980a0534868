// Small arithmetic on measurements.

export function median(values) {
  return percentile(values, 0.5);
}

/** @param share 0.5 for the median, 0.99 for the slowest hundredth */
export function percentile(values, share) {
  if (values.length === 0) return undefined;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** Median, least and greatest. */
export function spread(values) {
  if (values.length === 0) return undefined;
  return {
    median: rounded(median(values), 3),
    min: rounded(Math.min(...values), 3),
    max: rounded(Math.max(...values), 3),
  };
}

export function rounded(value, digits) {
  return value === undefined ? undefined : Number(value.toFixed(digits));
}
