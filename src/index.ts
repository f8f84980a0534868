// The library's front door.

export {
  ConfigurationError,
  composeHttpDestination as openHttpDestination,
  composeLedger as openLedger,
  type LedgerParts as LedgerOptions,
  type OpenedHttpDestination,
} from './compose.ts';
export { answerText } from './core/answer-wording.ts';
export type { JsonObject, JsonValue } from './core/canonical.ts';
export { canonicalJson, checkRepresentable } from './core/canonical.ts';
export type { RepeatClass, ToolClass, ToolFacts } from './core/contract.ts';
export type { Effect, Resolution, Stage } from './core/lifecycle.ts';
export type { Operation, OperationEvent, OperationId } from './core/operation.ts';
export { effectLabel, labelOf, sentenceOf } from './core/wording.ts';
export { DestinationError, functionDestination } from './destination/function-destination.ts';
export type { Destination } from './destination/port.ts';
export type { Answer } from './engine/answers.ts';
export type { FactsSource } from './engine/context.ts';
export type { WriteCall } from './engine/draft.ts';
export type { DecisionResult, Ledger, ReviewDecision } from './engine/ledger.ts';
export type { Notice, NoticeResult } from './engine/notices.ts';
export { StoreFault } from './store/port.ts';
