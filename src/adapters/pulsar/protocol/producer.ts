/** A producer on one connection. Sends are pipelined; the entries are bytes that pass through. */
import { isFieldSet } from '@bufbuild/protobuf';
import type { EntryBuffers } from '../../../entry/index.js';
import { IsthmusError } from '../../../errors.js';
import { checkDataTopic, checkId } from './checks.js';
import { type Command, closedByBroker, positionOf } from './commands.js';
import { type BaseCommand, type ProducerSuccess, ProducerSuccessSchema } from './commands_pb.js';
import type { Connection, Endpoint, RequestResult } from './connection.js';
import { Gate } from './gate.js';
import { checkWhole } from './settings.js';
import type { Closed, ConnectionEnd, OpenProducerResult, Producer, ProducerEvents, ProducerOptions } from './types.js';

const ACCESS_MODES = { shared: 0, exclusive: 1, waitForExclusive: 2 } as const;

const MAX_INT32 = 2 ** 31 - 1;

/** Throws `invalidArgument` for options that cannot be, or that contradict each other. */
export function checkProducerOptions({ topic, access = 'shared', topicEpoch }: ProducerOptions): void {
  checkDataTopic(topic);
  if (topicEpoch === undefined || access === 'exclusive') return;
  throw new IsthmusError('invalidArgument', `topicEpoch ${topicEpoch} with access ${access}: only exclusive has one`);
}

/** Opens a producer on the broker that owns the topic. */
export function openProducer(
  connection: Connection,
  options: ProducerOptions,
  events: ProducerEvents,
): Promise<OpenProducerResult> {
  const { topic, name, access = 'shared', topicEpoch } = options;
  const producer = new ConnectedProducer(connection, events);
  const open = (requestId: bigint): Command => ({
    producer: {
      topic,
      producerId: producer.id,
      requestId,
      userProvidedProducerName: name !== undefined,
      producerAccessMode: ACCESS_MODES[access],
      ...(name === undefined ? {} : { producerName: name }),
      ...(topicEpoch === undefined ? {} : { topicEpoch }),
    },
  });
  return new Promise((resolve) => {
    connection.ask('producerSuccess', open, (result) => producer.answered(result, resolve));
  });
}

class ConnectedProducer implements Producer, Endpoint {
  readonly id: bigint;
  name = '';
  lastSequenceId = -1n;
  topicEpoch: bigint | undefined;
  private state: 'opening' | 'waiting' | 'ready' | 'closed' = 'opening';
  /** It was closed from here: no event comes any more. */
  private isSilent = false;
  private lastSent = -1n;
  /** Bytes of the sends without an answer, by sequence id. */
  private readonly inFlight = new Map<bigint, number>();
  private readonly gate = new Gate();

  constructor(
    private readonly connection: Connection,
    private readonly events: ProducerEvents,
  ) {
    this.id = connection.newId();
    connection.attach(this.id, this);
  }

  get ready(): boolean {
    return this.state === 'ready';
  }

  get maxMessageBytes(): number {
    return this.connection.maxMessageBytes;
  }

  get lastHeardMs(): number {
    return this.connection.lastHeardMs;
  }

  get inFlightBytes(): number {
    return this.connection.inFlightBytes;
  }

  send(sequenceId: bigint, messages: number, entry: EntryBuffers): boolean {
    const bytes = entry.head.length + entry.payload.length;
    this.checkSend(sequenceId, messages, bytes);
    if (this.state === 'closed') return true;
    this.lastSent = sequenceId;
    this.inFlight.set(sequenceId, bytes);
    this.connection.sendEntry({ send: { producerId: this.id, sequenceId, numMessages: messages } }, entry);
    return this.connection.hasRoom;
  }

  async room(): Promise<void> {
    while (this.state !== 'closed' && !this.connection.hasRoom) await this.connection.roomChange();
  }

  async close(): Promise<void> {
    this.isSilent = true;
    if (this.state === 'closed') return;
    this.release();
    await this.connection.request('success', (requestId) => this.closing(requestId));
  }

  /** Hears the answer to the opening; where that says that the producer waits, also the one that ends the waiting. */
  answered(result: RequestResult<'producerSuccess'>, resolve: (result: OpenProducerResult) => void): void {
    if (this.state === 'opening') {
      if (result.type === 'answered') {
        this.grant(result.answer);
        this.gate.open();
        return resolve({ type: 'opened', producer: this });
      }
      this.release();
      // It may still be granted, and would hold the name with nobody knowing.
      if (result.type === 'unreachable') this.connection.send(this.closing(this.connection.newId()));
      return resolve(result);
    }
    if (this.state !== 'waiting') return;
    if (result.type === 'refused') return this.closed(result);
    if (result.type !== 'answered') return;
    this.grant(result.answer);
    this.tell(() => this.events.onReady?.(this.topicEpoch));
  }

  receive({ sendReceipt, sendError, closeProducer }: BaseCommand): void {
    if (sendReceipt !== undefined) {
      const { sequenceId, messageId } = sendReceipt;
      if (!this.settle(sequenceId)) return;
      this.tell(() => this.events.onReceipt({ sequenceId, at: positionOf(messageId) }));
    } else if (sendError !== undefined) {
      const { sequenceId, error: code, message } = sendError;
      if (!this.settle(sequenceId)) return;
      this.tell(() => this.events.onSendError({ sequenceId, code, message }));
    } else if (closeProducer !== undefined && this.state !== 'opening') {
      this.closed(closedByBroker(closeProducer, this.connection.settings.isTls));
    }
  }

  disconnected(end: ConnectionEnd): void {
    this.closed({ type: 'disconnected', ...end });
  }

  private checkSend(sequenceId: bigint, messages: number, bytes: number): void {
    checkId('sequenceId', sequenceId);
    checkWhole('messages', messages, MAX_INT32);
    if (sequenceId <= this.lastSent) {
      throw new IsthmusError('invalidArgument', `sequenceId is ${sequenceId} after ${this.lastSent}: it ascends`);
    }
    if (bytes <= this.maxMessageBytes) return;
    throw new IsthmusError('tooLarge', `an entry of ${bytes} bytes, where the broker takes ${this.maxMessageBytes}`);
  }

  private grant(success: ProducerSuccess): void {
    this.name = success.producerName;
    this.lastSequenceId = success.lastSequenceId;
    this.state = success.producerReady ? 'ready' : 'waiting';
    this.topicEpoch = isFieldSet(success, ProducerSuccessSchema.field.topicEpoch) ? success.topicEpoch : undefined;
  }

  /** False for a send that is not in flight: a second answer to it says nothing new. */
  private settle(sequenceId: bigint): boolean {
    const bytes = this.inFlight.get(sequenceId);
    if (bytes === undefined) return false;
    this.inFlight.delete(sequenceId);
    this.connection.settle(bytes);
    return true;
  }

  private closed(closed: Closed): void {
    this.release();
    this.tell(() => this.events.onClosed(closed));
  }

  /** Leaves the connection. What has no answer gets none any more. */
  private release(): void {
    this.state = 'closed';
    this.connection.detach(this.id);
    for (const bytes of this.inFlight.values()) this.connection.settle(bytes);
    this.inFlight.clear();
    this.connection.wake();
  }

  private tell(event: () => void): void {
    this.gate.pass(() => {
      if (!this.isSilent) event();
    });
  }

  private closing(requestId: bigint): Command {
    return { closeProducer: { producerId: this.id, requestId } };
  }
}
