/** What the example takes your broker and its client to be: abilities that every broker has, under whatever names. */
import type {
  EntrySource,
  Layout,
  RemoteProducer,
  RemoteTopicLayout,
  SendResult,
  SourcePosition,
  WatermarkResult,
} from 'isthmus';

/** A durable subscription, one for each remote. */
export interface YourSubscription extends Pick<EntrySource, 'read' | 'acknowledge' | 'acknowledged' | 'backlog'> {
  delete(): Promise<void>;
}

export interface YourBroker {
  readonly cluster: string;
  /** `parseLayout` of the record in your metadata store, now and after every change. */
  watchLayout(topic: string, signal: AbortSignal): AsyncIterable<Layout>;
  lastPosition(topic: string, segmentId: number): Promise<SourcePosition | undefined>;
  subscription(topic: string, name: string): YourSubscription;
}

export interface YourClient {
  readonly cluster: string;
  watchLayout(topic: string, signal: AbortSignal): AsyncIterable<RemoteTopicLayout>;
  /** The producer, and the last position that your broker's `DedupWindow` has of it. One result for each send, in order. */
  openProducer(
    topic: string,
    segmentId: number,
    name: string,
    onResult: (result: SendResult) => void,
  ): Promise<{ readonly producer: RemoteProducer; readonly watermark?: SourcePosition } | 'sealed'>;
  watermark(topic: string, segmentId: number, name: string): Promise<WatermarkResult>;
}
