/** A consumer on one connection: durable and exclusive, or a reader without a cursor that survives. */
import { isFieldSet } from '@bufbuild/protobuf';
import { IsthmusError } from '../../../errors.js';
import { checkDataTopic, checkPosition } from './checks.js';
import { type Command, closedByBroker, positionOf, refused, unreachable } from './commands.js';
import { AckResponseSchema, type BaseCommand } from './commands_pb.js';
import type { Connection, Endpoint, RequestResult } from './connection.js';
import { Gate } from './gate.js';
import { checkWhole } from './settings.js';
import type {
  AckType,
  Closed,
  ConnectionEnd,
  Consumer,
  ConsumerEvents,
  EntryPosition,
  LastMessageIdResult,
  Refusal,
  SubscribeOptions,
  SubscribeResult,
} from './types.js';

const EXCLUSIVE = 0;
const EARLIEST = 1;
const LATEST = 0;
const ACK_TYPES = { individual: 0, cumulative: 1 } as const;
const MAX_UINT32 = 2 ** 32 - 1;

/** Throws `invalidArgument` for options that cannot be. */
export function checkSubscribeOptions(options: SubscribeOptions): void {
  checkDataTopic(options.topic);
  if (options.subscription === '') throw new IsthmusError('invalidArgument', 'subscription is "": a name is not empty');
  if (!options.durable) checkPosition(options.from);
}

/** Subscribes at the broker that owns the topic. */
export function openConsumer(
  connection: Connection,
  options: SubscribeOptions,
  events: ConsumerEvents,
): Promise<SubscribeResult> {
  const consumer = new ConnectedConsumer(connection, events);
  return new Promise((resolve) => {
    const make = (requestId: bigint) => subscribing(options, consumer.id, requestId);
    connection.ask('success', make, (result) => consumer.answered(result, resolve));
  });
}

function subscribing(options: SubscribeOptions, consumerId: bigint, requestId: bigint): Command {
  const { topic, subscription, consumerName, durable } = options;
  return {
    subscribe: {
      topic,
      subscription,
      subType: EXCLUSIVE,
      consumerId,
      requestId,
      durable,
      // A reader that is placed behind the last entry would else begin with the first one.
      initialPosition: durable ? EARLIEST : LATEST,
      forceTopicCreation: false,
      ...(consumerName === undefined ? {} : { consumerName }),
      ...(durable ? {} : { startMessageId: options.from, readCompacted: options.readCompacted ?? false }),
    },
  };
}

class ConnectedConsumer implements Consumer, Endpoint {
  readonly id: bigint;
  private state: 'opening' | 'open' | 'closed' = 'opening';
  /** It was closed from here: no event comes any more. */
  private isSilent = false;
  private readonly gate = new Gate();

  constructor(
    private readonly connection: Connection,
    private readonly events: ConsumerEvents,
  ) {
    this.id = connection.newId();
    connection.attach(this.id, this);
  }

  get lastHeardMs(): number {
    return this.connection.lastHeardMs;
  }

  flow(permits: number): void {
    checkWhole('permits', permits, MAX_UINT32);
    if (this.state === 'open') this.connection.send({ flow: { consumerId: this.id, messagePermits: permits } });
  }

  ack(type: AckType, positions: readonly EntryPosition[]): void {
    const command = this.acknowledging(type, positions);
    if (this.state === 'open') this.connection.send(command);
  }

  async ackAnswered(type: AckType, positions: readonly EntryPosition[]): Promise<{ type: 'answered' } | Refusal> {
    const { ack } = this.acknowledging(type, positions);
    if (this.state !== 'open') return this.notOpen();
    const result = await this.connection.request('ackResponse', (requestId) => ({ ack: { ...ack, requestId } }));
    if (result.type !== 'answered') return result;
    const { answer } = result;
    const isRefused = isFieldSet(answer, AckResponseSchema.field.error);
    return isRefused ? refused(answer.error, answer.message) : { type: 'answered' };
  }

  async lastMessageId(): Promise<LastMessageIdResult> {
    if (this.state !== 'open') return this.notOpen();
    const result = await this.connection.request('lastMessageId', (requestId) => ({
      getLastMessageId: { consumerId: this.id, requestId },
    }));
    if (result.type !== 'answered') return result;
    const { lastMessageId, consumerMarkDeletePosition } = result.answer;
    return {
      type: 'answered',
      last: positionOf(lastMessageId),
      markDelete: positionOf(consumerMarkDeletePosition),
    };
  }

  async close(): Promise<void> {
    this.isSilent = true;
    if (this.state === 'closed') return;
    this.release();
    await this.connection.request('success', (requestId) => this.closing(requestId));
  }

  /** Hears the answer to the opening. */
  answered(result: RequestResult<'success'>, resolve: (result: SubscribeResult) => void): void {
    if (result.type === 'answered') {
      this.state = 'open';
      this.gate.open();
      return resolve({ type: 'subscribed', consumer: this });
    }
    this.release();
    // It may still be granted, and would hold the subscription with nobody knowing.
    if (result.type === 'unreachable') this.connection.send(this.closing(this.connection.newId()));
    resolve(result);
  }

  receive({ message, reachedEndOfTopic, closeConsumer }: BaseCommand, bytes: Uint8Array): void {
    if (message !== undefined) {
      const at = positionOf(message.messageId);
      if (at !== undefined) this.tell(() => this.events.onEntry({ ...at, bytes }));
    } else if (reachedEndOfTopic !== undefined) {
      this.tell(() => this.events.onEndOfTopic?.());
    } else if (closeConsumer !== undefined && this.state === 'open') {
      this.closed(closedByBroker(closeConsumer, this.connection.settings.isTls));
    }
  }

  disconnected(end: ConnectionEnd): void {
    this.closed({ type: 'disconnected', ...end });
  }

  private acknowledging(type: AckType, positions: readonly EntryPosition[]) {
    positions.forEach(checkPosition);
    if (positions.length === 0 || (type === 'cumulative' && positions.length > 1)) {
      throw new IsthmusError(
        'invalidArgument',
        `${positions.length} positions in one ${type} acknowledgement: ${type === 'cumulative' ? 'one' : 'one or more'}`,
      );
    }
    return { ack: { consumerId: this.id, ackType: ACK_TYPES[type], messageId: [...positions] } };
  }

  private closed(closed: Closed): void {
    this.release();
    this.tell(() => this.events.onClosed(closed));
  }

  private release(): void {
    this.state = 'closed';
    this.connection.detach(this.id);
  }

  private tell(event: () => void): void {
    this.gate.pass(() => {
      if (!this.isSilent) event();
    });
  }

  private notOpen(): Refusal {
    return unreachable('the consumer is closed');
  }

  private closing(requestId: bigint): Command {
    return { closeConsumer: { consumerId: this.id, requestId } };
  }
}
