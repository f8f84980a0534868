// One try at sending, as it is recorded before the first byte leaves.

/** `sha256:` + hex of a salted content document; the only form in which content is named in records. */
export type ContentDigest = string;

/** `sendBy` (ms since the epoch) is informative; the sender measures monotonic time. */
export interface Attempt {
  readonly id: string;
  readonly number: number;
  readonly worker: string;
  readonly epoch: number;
  readonly startedAt: number;
  readonly sendBy: number;
  readonly open: boolean;
  /** The kind of guard that this repeat was made under (D7), where it is one. */
  readonly under?: 'request_key' | 'client_identity' | 'precondition' | 'desired_state' | 'sequence';
  /** A keyed hash over credential and place, where the destination tells them: under others a key is another one. */
  readonly scope?: string;
  /** How many messages it consists of, where the destination asked back and was answered; 1 when absent. */
  readonly legs?: number;
  /** True when another took the claim while this attempt was out: its result is late evidence, never more. */
  readonly fenced?: boolean;
}
