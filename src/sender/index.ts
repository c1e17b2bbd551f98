export {
  ANSWER_TABLE,
  type AnswerAction,
  type AnswerRow,
  type ChunkOutcome,
  type ErrorClass,
  judgeAnswer,
  type Seen,
  type Verdict,
} from './answer-table.js';
export { type ChildrenListing, type ReadClass, readClass } from './answers.js';
export { type Capabilities, CapabilityProbe, DEFAULT_CAPABILITIES, KnownCapabilities } from './capabilities.js';
export { ByteCap, type Chunk, type ChunkLimits, type Compress, compressIfWorthwhile, cutChunk } from './chunk.js';
export type { LinkCounters, RemoteCounters } from './counters.js';
export type { CursorReport } from './cursor-report.js';
export { type SendItem, sendItem } from './encode.js';
export type { CursorName, SenderEffect, SenderEvent, SenderInput, SenderLog } from './events.js';
export {
  type AttachedParent,
  attachRefusal,
  attachWarnings,
  CHECK_PRIORITY,
  checkStatus,
  type FoldedCheck,
  foldChecks,
  foldLink,
  type LinkSummary,
  resumedTarget,
} from './fold.js';
export { Gate, type GateFailure, type GatePass, type GateWaiter } from './gate.js';
export { checkOffset, checkTopicName, REMOTE_LIMITS } from './inputs.js';
export { isRawJson } from './json-text.js';
export {
  type CheckClass,
  type CheckedParent,
  CheckPace,
  type CheckWarning,
  checkMember,
  type Finding,
  judgeChildren,
  judgeDescription,
  judgeUnauthorized,
  judgeUsers,
  laneCapacity,
  type MemberPorts,
  type MemberQuestion,
  type MemberReport,
} from './member-check.js';
export {
  DEFAULT_HELD_BYTES,
  type LinkReport,
  type NodeReport,
  NodeSender,
  type NodeSenderOptions,
  type RemoteReport,
} from './node-sender.js';
export type {
  HttpAnswer,
  HttpOutcome,
  Jitter,
  LinkRecord,
  RemoteLimits,
  RemoteLookup,
  SenderRequest,
  SkipEntry,
  Slab,
  SlabLimits,
} from './ports.js';
export { fnv1a, laneCount, laneOf, type SourceRecord } from './record.js';
export {
  BACKLOG_SCANS,
  type FlightAnswer,
  type FlightOptions,
  type FlightStart,
  SingleFlight,
  UNSHIPPED_FLIGHTS,
} from './single-flight.js';
export {
  isStalled,
  type LookupState,
  needsFix,
  rankOf,
  SENDER_STATES,
  type SenderState,
  type StalledState,
  worstState,
} from './states.js';
export { judgeTarget, type TargetVerdict } from './target-check.js';
export {
  type Backlog,
  type CursorLag,
  countUnshipped,
  type DeleteAnswer,
  isShipped,
  judgeDelete,
  SCAN_LIMITS,
  type UnshippedCount,
  type UnshippedPorts,
  type UnshippedQuestion,
} from './unshipped.js';
export {
  type GateAnswer,
  type Hop,
  hopGate,
  type MemberRelease,
  type Posture,
  postureGate,
  REMOTE_ENTRY_TYPE,
  type ReleaseReading,
  type RemoteWrite,
  releaseGate,
  WRITE_GATES,
  type WriteGate,
  WritePace,
} from './write-gates.js';
