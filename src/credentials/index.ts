export type { Binding } from './binding.js';
export { drawRemoteId, drawSalt, type RandomBytes } from './draw.js';
export type { Envelope } from './envelope.js';
export { CredentialKey } from './key.js';
export { CredentialKeys, type CredentialKeysOptions, type Opened, type OpenFailure } from './keys.js';
export { RemoteLogin } from './login.js';
export { type LoginChange, type LoginLookup, type RegisteredRemote, RemoteLogins } from './logins.js';
export {
  type CredentialStore,
  type Reencrypted,
  type ReplaceResult,
  reencrypt,
  type SealedRemote,
} from './reencrypt.js';
export {
  checkPauseReason,
  checkRemoteId,
  checkRemoteName,
  checkUsername,
  isStrongSecret,
  readPassword,
} from './rules.js';
export {
  judgeSeal,
  SEAL_LIMIT,
  SEAL_WARNING,
  type SealCount,
  type SealCounts,
  type SealProposal,
  type SealVerdict,
} from './seal-count.js';
export { Secret } from './secret.js';
export { checkCaPem, trustAnchorOf } from './trust-anchor.js';
export { judgeUpdate, type RemoteVersions, type UpdateVerdict } from './update.js';
