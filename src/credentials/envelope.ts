/** A sealed password as it is stored and sent: JSON of three members, of no use without the key. */

export interface Envelope {
  /** Version of the form. */
  readonly v: 1;
  /** Id of the key that sealed it, 16 hex digits. */
  readonly kv: string;
  /** Nonce of 12 bytes, ciphertext and tag of 16 bytes, as padded standard base64. */
  readonly ct: string;
}
