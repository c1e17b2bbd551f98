/** Bytes in the forms of a sealed credential: base64 that has one spelling only, and fields that cannot run together. */

/** The bytes of padded standard base64 (RFC 4648, section 4); undefined for any spelling but the one of its encoder. */
export function fromBase64(text: unknown): Buffer | undefined {
  if (typeof text !== 'string') return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

/** The texts as UTF-8, each behind its length in bytes as 32 bits, big end first: `ab|c` and `a|bc` differ. */
export function lengthPrefixed(...texts: readonly string[]): Buffer {
  return Buffer.concat(
    texts.flatMap((text) => {
      const bytes = Buffer.from(text);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}
