/**
 * Why a segment does not go on although there is something to do and nothing outstanding that would end it. The list
 * is closed ("Progress"); each reason has its remedy.
 */

export const STOP_REASONS = Object.freeze({
  held: 'An entry can be neither sent nor opened. Look at it, then skip it, or let the layouts meet; the TTL passes it as well.',
  fenced: 'Another process replicates this segment: a later session has written the cursor. Stop this one, or that.',
  pinLost:
    'What was sent last cannot be read back: the pin on the remote was moved by a TTL, a quota or an operator. Compare the topics, then remove the checkpoint to go on at the risk of duplicates.',
  unauthorized:
    'The remote refuses the credentials. Grant the rights or renew the secret; it is tried again by itself.',
  unsupported:
    'The remote cannot take part. Upgrade it, or take it out of the replication set; it is tried again by itself.',
  sourceWentBackwards:
    'The remote has a later position than the source ever wrote: the source was rebuilt. Choose a new producer incarnation, or take the remote out and in again.',
  notProvisioned: 'The topic does not exist on the remote, and may not be created. See the reason of the provisioning.',
  paused: 'Paused by an operator. Resume it.',
});

export type StopReason = keyof typeof STOP_REASONS;
