/**
 * Which key exchanges a remote is offered: X25519MLKEM768, which a later quantum computer does not undo, where this Node
 * has it, and X25519; no NIST curve (Narad, outbound transport). OpenSSL knows the first from 3.5 on.
 */
import { createSecureContext } from 'node:tls';

export interface KeyExchange {
  /** In OpenSSL's words, the preferred first, with a colon between them. */
  readonly groups: string;
  readonly isPostQuantum: boolean;
}

/** What this process can offer. */
export function offeredKeyExchange(): KeyExchange {
  const both = 'X25519MLKEM768:X25519';
  try {
    createSecureContext({ ecdhCurve: both });
    return { groups: both, isPostQuantum: true };
  } catch {
    return { groups: 'X25519', isPostQuantum: false };
  }
}
