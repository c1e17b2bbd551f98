/**
 * The interface of the binary-protocol client: one `PulsarClient` per cluster and credential, with producers, consumers,
 * layout sessions and schema calls on shared connections. Two per broker: one for sending, since a publish limit makes
 * the broker stop reading a whole connection, and one for everything else. Entries go in and out as bytes.
 *
 * What the outside world does is a value: `Refusal`, `Closed`, `SendError`. Nothing here is tried again for longer than
 * its time limit, and nothing reconnects by itself: a producer, consumer or session that has closed is opened anew by
 * its owner, with a backoff of its own. Bad arguments throw `invalidArgument`.
 *
 * Events come one after the other, in the order of the wire, and only after the promise of the opening has resolved and
 * the code that awaited it has run. After `close()` no event comes any more. A handler must not throw.
 */
import type { EntryBuffers } from '../../../entry/index.js';
import type { Segment } from '../../../layout/index.js';
import type { Clock } from '../../../ports/index.js';

/** Error codes of the protocol (ServerError) that a caller may have to tell apart. */
export const SERVER_ERROR = {
  unknown: 0,
  metadata: 1,
  /** Ambiguous for a send: what was in flight may have been stored or not. */
  persistence: 2,
  authentication: 3,
  authorization: 4,
  /** An exclusive subscription is taken, or the topic's limit of consumers is reached (the text says so). */
  consumerBusy: 5,
  /** Not served by this broker, or moving. The client has already looked up again. */
  serviceNotReady: 6,
  quotaHold: 7,
  quotaException: 8,
  checksum: 9,
  topicNotFound: 11,
  subscriptionNotFound: 12,
  consumerNotFound: 13,
  tooManyRequests: 14,
  /** The segment is sealed. */
  topicTerminated: 15,
  /** The producer's name is taken, or the topic's limit of producers is reached (the text says so). */
  producerBusy: 16,
  incompatibleSchema: 18,
  notAllowed: 22,
  /** Exclusive access is held by somebody else, or the topic's epoch has moved. */
  producerFenced: 25,
} as const;

export interface PulsarClientOptions {
  /**
   * Where to begin: one or more `pulsar://host[:port]`, or of `pulsar+ssl://` only. Default ports 6650 and 6651. They are
   * tried in turn. Other brokers are connected to only where a broker has named them, by the URL of the same scheme.
   */
  readonly serviceUrls: readonly string[];
  /** For `pulsar+ssl://`. The name in a broker's certificate must be that of its URL. */
  readonly tls?: {
    /** Certificates of authorities in PEM, instead of those that Node trusts. */
    readonly ca?: string;
    /** The name to expect in every certificate, where it is not the host of the URL. */
    readonly serverName?: string;
  };
  /**
   * Reads the token anew: for each connection and each time the broker asks again. It must stay a token of the same
   * role. Without it the connection is anonymous.
   */
  readonly token?: () => string | Promise<string>;
  /** Time limit to a connection that the broker has accepted, in milliseconds; default 10,000. */
  readonly connectTimeoutMs?: number;
  /** Time limit of one request, a look-up included, in milliseconds; default 30,000. */
  readonly requestTimeoutMs?: number;
  /**
   * Milliseconds between two pings, 1..30,000; default 10,000. A connection is given up once not one byte has come in for
   * twice that time.
   */
  readonly keepAliveMs?: number;
  /** How many bytes of entries may be sent to one broker and not answered yet before `send` says stop; default 16 MiB. */
  readonly maxInFlightBytes?: number;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
}

/** Where an entry is stored. Both ids are 0..2^63-1, the entry id of a mark-delete position from -1. */
export interface EntryPosition {
  readonly ledgerId: bigint;
  readonly entryId: bigint;
}

/** The broker said no: a code of `SERVER_ERROR`, and its own words. */
export interface BrokerRefusal {
  readonly type: 'refused';
  readonly code: number;
  readonly message: string;
}

/** Why something was not done. */
export type Refusal =
  | BrokerRefusal
  /** No broker could be asked, or none answered in time; what was asked for may have been done. */
  | { readonly type: 'unreachable'; readonly reason: string };

/** Why a producer, consumer or session has ended that was not closed from here. It is of no use any more. */
export type Closed =
  /** The broker closed it alone: a seal, a move to another broker, a quota, a revoked right. */
  | {
      readonly type: 'closedByBroker';
      /** The broker that takes over, where this one knows. */
      readonly assignedUrl?: string;
    }
  /** The broker ended it with an error: a waiting producer that cannot be granted any more, a layout session that failed. */
  | BrokerRefusal
  /** Its connection ended. */
  | ({ readonly type: 'disconnected' } & ConnectionEnd);

/** Why a connection ended. */
export interface ConnectionEnd {
  /**
   * - `lost`: closed or reset by the other side or the network.
   * - `silent`: not one byte came in for two keep-alive intervals.
   * - `authentication`: the token was refused, could not be read, or did not come in time.
   * - `protocol`: the other side sent what is no frame or no command.
   * - `closedHere`: the client was closed.
   */
  readonly cause: 'lost' | 'silent' | 'authentication' | 'protocol' | 'closedHere';
  readonly reason: string;
}

// ---- producers

export interface ProducerOptions {
  /** `segment://...` for data; a plain topic for state and locks. Never a bare `topic://`: it would write to a shadow topic. */
  readonly topic: string;
  /** Locks the name on the topic: a second one is refused with 16. Absent: the broker makes one up. */
  readonly name?: string;
  /**
   * - `shared`: default.
   * - `exclusive`: refused with 25 while there are others.
   * - `waitForExclusive`: opened at once, and ready when it is its turn.
   */
  readonly access?: 'shared' | 'exclusive' | 'waitForExclusive';
  /** With `exclusive`: the epoch that this holder was granted before. Never a number that was not granted. */
  readonly topicEpoch?: bigint;
  /**
   * `sending`: default. `control`: on the connection that no publish limit stops, for locks; not for bulk.
   */
  readonly connection?: 'sending' | 'control';
}

/** What was stored. */
export interface SendReceipt {
  readonly sequenceId: bigint;
  /** Undefined where the broker's own deduplication says that it had it already. */
  readonly at: EntryPosition | undefined;
}

/** What the broker refused, or cannot tell (code 2). What was sent behind it may have been stored. */
export interface SendError {
  readonly sequenceId: bigint;
  readonly code: number;
  readonly message: string;
}

export interface ProducerEvents {
  /** In the order of the sends. */
  onReceipt(receipt: SendReceipt): void;
  onSendError(error: SendError): void;
  /** Once, for `waitForExclusive` that was not ready at once. */
  onReady?(topicEpoch: bigint | undefined): void;
  /** Once. Sends without an answer get none any more. */
  onClosed(closed: Closed): void;
}

export interface Producer {
  readonly name: string;
  /** The broker's deduplication watermark of this name; -1 when there is none. */
  readonly lastSequenceId: bigint;
  /** False while a `waitForExclusive` producer waits. */
  readonly ready: boolean;
  /** What exclusive access was granted under, once ready; undefined for shared access. */
  readonly topicEpoch: bigint | undefined;
  /** `max_message_size` of the broker, in bytes: more cannot be sent. What is just below it is risky as well. */
  readonly maxMessageBytes: number;
  /** When the last byte came in on its connection, by the client's clock. */
  readonly lastHeardMs: number;
  /** Bytes of entries sent by all producers of this connection and not answered yet. */
  readonly inFlightBytes: number;
  /**
   * Sends one entry, without waiting, and false as answer means: wait for `room()` before the next one. `sequenceId` is
   * 0..2^63-1 and ascends; `messages` is the entry's `num_messages_in_batch`, 1 or more. The buffers must not change
   * until the answer is here. Several calls of one turn of the event loop leave in one write. After the producer has
   * closed nothing is sent. Throws `tooLarge` above `maxMessageBytes`.
   */
  send(sequenceId: bigint, messages: number, entry: EntryBuffers): boolean;
  /** Resolves when less is in flight than `maxInFlightBytes`, and when the producer has closed. */
  room(): Promise<void>;
  /** Gives the name back. Sends without an answer get none any more. Resolves when the broker has answered or is gone. */
  close(): Promise<void>;
}

export type OpenProducerResult = { readonly type: 'opened'; readonly producer: Producer } | Refusal;

// ---- consumers

export type SubscribeOptions = {
  /** `segment://...`, the `persistent://` name of a legacy segment, or a plain topic. It is never created. */
  readonly topic: string;
  readonly subscription: string;
  readonly consumerName?: string;
} & (
  | {
      /** Exclusive, with a cursor at the broker: it begins where that stands; a new one at the earliest entry. */
      readonly durable: true;
    }
  | {
      /** Exclusive, without a cursor that survives: a reader. */
      readonly durable: false;
      /** The first entry, included; `{ ledgerId: 0n, entryId: 0n }` is the start. */
      readonly from: EntryPosition;
      /** From the compacted ledger first, then the tail; default false. */
      readonly readCompacted?: boolean;
    }
);

/** One entry as it is stored, with the checksum if it has one. */
export interface ReceivedEntry extends EntryPosition {
  /** A view of memory that is received once and never written again. */
  readonly bytes: Uint8Array;
}

export interface ConsumerEvents {
  onEntry(entry: ReceivedEntry): void;
  /** A sealed segment has been acknowledged to its end. Maybe more than once. */
  onEndOfTopic?(): void;
  /** Once. */
  onClosed(closed: Closed): void;
}

/** Each alone, or all up to and including the position. */
export type AckType = 'individual' | 'cumulative';

export interface Consumer {
  /** When the last byte came in on its connection, by the client's clock. */
  readonly lastHeardMs: number;
  /**
   * Lets the broker deliver, in messages, 1..2^32-1: an entry of n messages costs n, and one goes out while the balance
   * is above 0.
   */
  flow(permits: number): void;
  /** Acknowledges whole entries, without an answer. */
  ack(type: AckType, positions: readonly EntryPosition[]): void;
  /** The same with an answer. It does not mean that the acknowledgement is durable. */
  ackAnswered(type: AckType, positions: readonly EntryPosition[]): Promise<{ readonly type: 'answered' } | Refusal>;
  lastMessageId(): Promise<LastMessageIdResult>;
  close(): Promise<void>;
}

export type LastMessageIdResult =
  | {
      readonly type: 'answered';
      /** Undefined when nothing was ever written. Stands still where the broker has transactions enabled. */
      readonly last: EntryPosition | undefined;
      /** What is acknowledged without a gap; an entry id of -1 is before the ledger's first. */
      readonly markDelete: EntryPosition | undefined;
    }
  | Refusal;

export type SubscribeResult = { readonly type: 'subscribed'; readonly consumer: Consumer } | Refusal;

// ---- layouts and topics

/** The layout of a topic as a broker tells it: always whole, sealed segments included, and checked by no rule of layouts. */
export interface LayoutUpdate {
  readonly epoch: number;
  readonly segments: readonly Segment[];
  /** By segment, active ones only, and only where the broker names a URL of the scheme in use; a hint that goes stale. */
  readonly brokers: ReadonlyMap<number, string>;
  /** Undefined until the topic has a controller. */
  readonly controllerUrl: string | undefined;
  /** The full name of the topic. */
  readonly topic: string;
}

/** The broker does not have the feature: it said so when it accepted the connection. */
export interface Unsupported {
  readonly type: 'unsupported';
  readonly reason: string;
}

export interface LayoutEvents {
  /** As they come: one epoch may come several times. */
  onUpdate(update: LayoutUpdate): void;
  /** Once. An error of the broker ends the session too. */
  onClosed(closed: Closed): void;
}

/** A session or watch: it lasts until it is closed. */
export interface Session {
  /** When the last byte came in on its connection, by the client's clock. */
  readonly lastHeardMs: number;
  close(): void;
}

export type LayoutSessionResult =
  | { readonly type: 'opened'; readonly session: Session; readonly first: LayoutUpdate }
  | Refusal
  | Unsupported;

/** What has changed in a namespace's scalable topics, by full names: all of them, or a difference. */
export type TopicsUpdate =
  | { readonly type: 'snapshot'; readonly topics: readonly string[] }
  | { readonly type: 'diff'; readonly added: readonly string[]; readonly removed: readonly string[] };

export interface TopicsEvents {
  onUpdate(update: TopicsUpdate): void;
  /** Once. An error of the broker ends the watch too. */
  onClosed(closed: Closed): void;
}

export type TopicsWatchResult =
  | { readonly type: 'opened'; readonly session: Session; readonly first: TopicsUpdate }
  | Refusal
  | Unsupported;

// ---- schemas

/** A schema as one broker gives it and another takes it, all of it. */
export interface TopicSchema {
  readonly name: string;
  /** Pulsar's number of the type: STRING 1, JSON 2, AVRO 4 and others. */
  readonly type: number;
  readonly data: Uint8Array;
  readonly properties: readonly { readonly key: string; readonly value: string }[];
}

/** A topic without a schema, or without that version: refused with 11. */
export type GetSchemaResult =
  | { readonly type: 'found'; readonly schema: TopicSchema; readonly version: Uint8Array | undefined }
  | Refusal;

/** An incompatible schema: refused with 18. */
export type RegisterSchemaResult = { readonly type: 'registered'; readonly version: Uint8Array } | Refusal;

// ---- the client

export interface PulsarClient {
  openProducer(options: ProducerOptions, events: ProducerEvents): Promise<OpenProducerResult>;
  subscribe(options: SubscribeOptions, events: ConsumerEvents): Promise<SubscribeResult>;
  /** The layout of a scalable topic (`topic://...`) now and after every change. A topic that is missing is refused with 11, never created. */
  openLayoutSession(topic: string, events: LayoutEvents): Promise<LayoutSessionResult>;
  /** The scalable topics of a namespace (`tenant/namespace`) now and after every change. */
  watchTopics(namespace: string, events: TopicsEvents): Promise<TopicsWatchResult>;
  /** `version` as entries carry it; absent: the latest. */
  getSchema(topic: string, version?: Uint8Array): Promise<GetSchemaResult>;
  /** The version of an equal schema, which is registered where it was not known. */
  getOrCreateSchema(topic: string, schema: TopicSchema): Promise<RegisterSchemaResult>;
  /** Ends all connections at once, and with them what is open (`closedHere`). Nothing can be opened afterwards. */
  close(): Promise<void>;
}
