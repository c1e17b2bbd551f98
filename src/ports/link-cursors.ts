/** Where it is kept how far each partition of a parent has come on its way to a remote. */

/** The cursors of links. They travel with their partition: whoever owns it finds here what the owner before has written. */
export interface LinkCursors {
  /** The offset that was written last; undefined when none was for this attachment. A rejection: asked again. */
  read(child: string, attachEpoch: number, partition: number): Promise<number | undefined>;
  /** Durable when it resolves; a rejection means not known to be written, and it is written again. */
  write(child: string, attachEpoch: number, partition: number, offset: number): Promise<void>;
}
