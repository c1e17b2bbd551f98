/** What the example takes your broker and its client to be: abilities that every broker has, under whatever names. */
import type { EntryRead, Layout, RemoteLayout, SourcePosition } from 'isthmus';

export interface YourBroker {
  readonly cluster: string;
  /** `parseLayout` of the record in your metadata store, now and after every change. */
  watchLayout(topic: string, signal: AbortSignal): AsyncIterable<Layout>;
  readEntries(
    topic: string,
    segmentId: number,
    after: SourcePosition | undefined,
    maxEntries: number,
    signal: AbortSignal,
  ): Promise<EntryRead>;
  loadCursor(topic: string, segmentId: number, remote: string): Promise<SourcePosition | undefined>;
  saveCursor(topic: string, segmentId: number, remote: string, position: SourcePosition): Promise<void>;
}

export interface YourClient {
  readonly cluster: string;
  watchLayout(topic: string, signal: AbortSignal): AsyncIterable<RemoteLayout>;
  /** Writes the buffers one behind the other as one entry. */
  publish(
    topic: string,
    segmentId: number,
    producer: string,
    position: SourcePosition,
    buffers: readonly Uint8Array[],
  ): Promise<'stored' | 'duplicate' | 'sealed' | 'timeout'>;
}
