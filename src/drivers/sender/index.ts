export type { ShownReport } from './checks.js';
export { DEFAULT_LIMITS } from './limits.js';
export type { LinkAnswer, LinkRefusal } from './link-answers.js';
export type { AttachRequest, TestRequest } from './link-writes.js';
export type { DriverLog, RemoteSenderEvent, SenderLogger } from './log.js';
export type { RequestWatch } from './machine-run.js';
export { type MetricHistogram, observeRemoteSender, type SenderMeter } from './metrics.js';
export { type RemoteDraft, type SealedDraft, type SealOptions, sealRemote } from './new-remote.js';
export {
  createRemoteSender,
  type RemoteSender,
  type RemoteSenderOptions,
  type RemoteSenderPorts,
} from './remote-sender.js';
export type { CursorStanding, KeyStanding, LinkStanding, RemoteSenderStatus, RemoteStanding } from './status.js';
export { type DialCounts, systemResolver } from './transport.js';
export type { ChildLag, ClusterBacklogs, UnshippedAnswer, UnshippedRequest } from './unshipped-check.js';
