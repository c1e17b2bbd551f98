/** What a source's schema version is called on the remote. */

/** How a translation ended. */
export type SchemaTranslation =
  | { readonly type: 'translated'; readonly version: Uint8Array }
  /** The remote cannot take this schema: the entry is held. */
  | { readonly type: 'incompatible'; readonly reason: string }
  /** Not known now; asked again later, and nothing is sent meanwhile. */
  | { readonly type: 'unknown'; readonly reason: string };

/** Translates versions of one topic's schema, registering it on the remote where it must. */
export interface SchemaTranslator {
  /** `version` as entries of the source carry it. The answer is kept for the life of the replicator unless it is unknown. */
  translate(version: Uint8Array): Promise<SchemaTranslation>;
}
