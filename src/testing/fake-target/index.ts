export {
  type AnswerOptions,
  edgeAnswer,
  errorAnswer,
  jsonAnswer,
  routeMissing,
  type TargetAnswer,
  textAnswer,
} from './answers.js';
export { type OpenBatch, TargetBroker, type TargetHead } from './broker.js';
export {
  type CertificateAuthority,
  type CertificateOptions,
  createAuthority,
  type ServerCertificate,
} from './certificates.js';
export type { OpenZstd } from './decoding.js';
export { FakeTarget, type FakeTargetOptions, startFakeTarget, type TargetFace } from './fake-target.js';
export type { FaultRule, RequestKind, SeenRequest, TargetFault } from './faults.js';
export type { StoredMessage } from './message-log.js';
export {
  type SentMessage,
  TARGET_RELEASES,
  type TargetChild,
  type TargetGrant,
  type TargetRelease,
  type TargetSettings,
  type TargetTopic,
  type TargetUser,
  topicOf,
} from './topics.js';
