// The digest that a person gives with a decision: whole, or its beginning as it was shown.

import type { Review } from '../core/operation.ts';

/** Fewer digits could be those of another payload, made to have them. */
export const DIGEST_PREFIX_MIN = 12;

/** The review's own digest, where what was given is its beginning; else what was given, which then differs. */
export function wholeDigest(review: Review, given: string): string {
  return review.digest.startsWith(given) ? review.digest : given;
}
