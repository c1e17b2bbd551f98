/** Commands as messages: their types, their bytes, and whom a command that comes in is for. */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  type BaseCommand,
  BaseCommandSchema,
  type CloseConsumer,
  type CloseProducer,
  type MessageId,
} from './commands_pb.js';
import type { BrokerRefusal, Closed, EntryPosition, Refusal } from './types.js';

/** A type's number is also that of the command's field in BaseCommand. */
const TYPES = {
  connect: 2,
  connected: 3,
  subscribe: 4,
  producer: 5,
  send: 6,
  sendReceipt: 7,
  sendError: 8,
  message: 9,
  ack: 10,
  flow: 11,
  success: 13,
  error: 14,
  closeProducer: 15,
  closeConsumer: 16,
  producerSuccess: 17,
  ping: 18,
  pong: 19,
  lookup: 23,
  lookupResponse: 24,
  reachedEndOfTopic: 27,
  getLastMessageId: 29,
  lastMessageId: 30,
  getSchema: 34,
  getSchemaResponse: 35,
  authChallenge: 36,
  authResponse: 37,
  ackResponse: 38,
  getOrCreateSchema: 39,
  getOrCreateSchemaResponse: 40,
  layoutLookup: 70,
  layoutUpdate: 71,
  layoutClose: 72,
  watchTopics: 76,
  watchTopicsUpdate: 77,
  watchTopicsClose: 78,
} as const;

type Fields = Omit<MessageInitShape<typeof BaseCommandSchema>, '$typeName' | '$unknown' | 'type'>;

/** A command to encode: an object with one member, named as its field in BaseCommand. */
export type Command = { [Name in keyof Fields]-?: Record<Name, NonNullable<Fields[Name]>> }[keyof Fields];

export function encodeCommand(command: Command): Uint8Array {
  const [name] = Object.keys(command) as [keyof typeof TYPES];
  return toBinary(BaseCommandSchema, create(BaseCommandSchema, { type: TYPES[name], ...command }));
}

/** Throws what @bufbuild/protobuf throws when the bytes are no command. */
export function decodeCommand(bytes: Uint8Array): BaseCommand {
  return fromBinary(BaseCommandSchema, bytes);
}

/** The request that a command answers; undefined when it answers none. */
export function answeredRequest(command: BaseCommand): bigint | undefined {
  const answer =
    command.success ??
    command.error ??
    command.producerSuccess ??
    command.lookupResponse ??
    command.lastMessageId ??
    command.getSchemaResponse ??
    command.getOrCreateSchemaResponse ??
    command.ackResponse;
  return answer?.requestId;
}

/** The producer, consumer, session or watch that a command is for; undefined when it is for none. */
export function addressee(command: BaseCommand): bigint | undefined {
  return (
    (command.sendReceipt ?? command.sendError ?? command.closeProducer)?.producerId ??
    (command.message ?? command.reachedEndOfTopic ?? command.closeConsumer)?.consumerId ??
    command.layoutUpdate?.sessionId ??
    command.watchTopicsUpdate?.watchId
  );
}

/** Ids are signed to the broker and unsigned on the wire: undefined for -1 as ledger id, which stands for no position. */
export function positionOf(id: MessageId | undefined): EntryPosition | undefined {
  const ledgerId = BigInt.asIntN(64, id?.ledgerId ?? -1n);
  return id === undefined || ledgerId < 0n ? undefined : { ledgerId, entryId: BigInt.asIntN(64, id.entryId) };
}

/** What a producer or consumer is told that the broker has closed. */
export function closedByBroker(close: CloseProducer | CloseConsumer, isTls: boolean): Closed {
  const assignedUrl = isTls ? close.assignedBrokerServiceUrlTls : close.assignedBrokerServiceUrl;
  return { type: 'closedByBroker', ...(assignedUrl === '' ? {} : { assignedUrl }) };
}

export function refused(code: number, message: string): BrokerRefusal {
  return { type: 'refused', code, message };
}

export function unreachable(reason: string): Refusal {
  return { type: 'unreachable', reason };
}
