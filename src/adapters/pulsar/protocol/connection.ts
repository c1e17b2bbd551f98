/**
 * One accepted connection to one broker: its requests, what is open on it, and its bytes in flight. It ends once,
 * everything on it is told why, and it is not opened again.
 */
import type { EntryBuffers } from '../../../entry/index.js';
import { addressee, answeredRequest, type Command, encodeCommand, refused, unreachable } from './commands.js';
import type { BaseCommand, Connected } from './commands_pb.js';
import { encodeEntryFrame } from './frames.js';
import { DEFAULT_MAX_MESSAGE_BYTES, type Link } from './link.js';
import type { Target } from './service-url.js';
import type { Settings } from './settings.js';
import { after } from './time.js';
import { answerChallenge } from './token.js';
import { type ConnectionEnd, type Refusal, SERVER_ERROR } from './types.js';

/** The request id of an error that is about the connection as a whole. */
const NO_REQUEST = 2n ** 64n - 1n;

/** Something that is open on a connection: a producer, consumer, session or watch. */
export interface Endpoint {
  receive(command: BaseCommand, entry: Uint8Array): void;
  /** Once; nothing is received afterwards. */
  disconnected(end: ConnectionEnd): void;
}

/** What can answer a request, by the names of commands. An error answers any. */
type AnswerName =
  | 'success'
  | 'producerSuccess'
  | 'lookupResponse'
  | 'lastMessageId'
  | 'getSchemaResponse'
  | 'getOrCreateSchemaResponse'
  | 'ackResponse';

type Answer = { readonly type: 'command'; readonly command: BaseCommand } | Refusal;

export type RequestResult<Name extends AnswerName> =
  | { readonly type: 'answered'; readonly answer: NonNullable<BaseCommand[Name]> }
  | Refusal;

type MakeRequest = (requestId: bigint) => Command;

export class Connection {
  /** The largest message that the broker takes, in bytes. */
  readonly maxMessageBytes: number;
  readonly hasScalableTopics: boolean;
  /** Bytes of entries that are sent and not answered. */
  inFlightBytes = 0;
  /** Why it has ended; undefined while it has not. */
  ended: ConnectionEnd | undefined;
  private readonly answers = new Map<bigint, (answer: Answer) => void>();
  private readonly endpoints = new Map<bigint, Endpoint>();
  private lastId = 0n;
  private waitingForRoom: (() => void)[] = [];

  constructor(
    private readonly link: Link,
    readonly target: Target,
    readonly settings: Settings,
    { maxMessageSize, featureFlags }: Connected,
  ) {
    this.maxMessageBytes = maxMessageSize > 0 ? maxMessageSize : DEFAULT_MAX_MESSAGE_BYTES;
    this.hasScalableTopics = featureFlags?.supportsScalableTopics ?? false;
    link.limitFrames(this.maxMessageBytes);
    link.handler = {
      onUp: () => undefined,
      onCommand: (command, entry) => this.receive(command, entry),
      onEnd: (end) => this.finish(end),
    };
    link.keepAlive();
  }

  get lastHeardMs(): number {
    return this.link.lastHeardMs;
  }

  get hasRoom(): boolean {
    return this.inFlightBytes < this.settings.maxInFlightBytes;
  }

  /** An id for a request or an endpoint: all are drawn from one counter. */
  newId(): bigint {
    this.lastId += 1n;
    return this.lastId;
  }

  send(command: Command): void {
    this.link.send(command);
  }

  /** The entry counts as in flight until as many bytes are given to `settle`. */
  sendEntry(command: Command, entry: EntryBuffers): void {
    this.inFlightBytes += entry.head.length + entry.payload.length;
    this.link.write(encodeEntryFrame(encodeCommand(command), entry));
  }

  /** So many bytes are answered, or never will be. */
  settle(bytes: number): void {
    this.inFlightBytes -= bytes;
    if (this.hasRoom) this.wake();
  }

  /** Resolves when there is room again, and whenever `wake` is called. */
  roomChange(): Promise<void> {
    return new Promise((resolve) => this.waitingForRoom.push(resolve));
  }

  wake(): void {
    const waiting = this.waitingForRoom;
    if (waiting.length === 0) return;
    this.waitingForRoom = [];
    for (const resolve of waiting) resolve();
  }

  attach(id: bigint, endpoint: Endpoint): void {
    this.endpoints.set(id, endpoint);
  }

  detach(id: bigint): void {
    this.endpoints.delete(id);
  }

  /** Sends a request and waits for its answer within the time limit. */
  request<Name extends AnswerName>(name: Name, make: MakeRequest): Promise<RequestResult<Name>> {
    return new Promise((resolve) => this.ask(name, make, resolve));
  }

  /**
   * Sends a request and hears its answer, or that the time is up. Only where that is a producer that is not ready,
   * another answer follows, without a time limit.
   */
  ask<Name extends AnswerName>(name: Name, make: MakeRequest, onAnswer: (result: RequestResult<Name>) => void): void {
    if (this.ended !== undefined) return onAnswer(unreachable(this.ended.reason));
    const limitMs = this.settings.requestTimeoutMs;
    const requestId = this.newId();
    const cancel = after(this.settings.clock, limitMs, () => {
      this.answers.delete(requestId);
      onAnswer(unreachable(`no answer within ${limitMs} ms`));
    });
    this.answers.set(requestId, (result) => {
      cancel();
      if (result.type !== 'command') return onAnswer(result);
      const answer = result.command[name];
      if (answer !== undefined) return onAnswer({ type: 'answered', answer });
      onAnswer(unreachable(`answered by a command of type ${result.command.type}`));
    });
    this.send(make(requestId));
  }

  end(cause: ConnectionEnd['cause'], reason: string): void {
    this.link.end(cause, reason);
  }

  private receive(command: BaseCommand, entry: Uint8Array): void {
    const endpointId = addressee(command);
    // Of those that are closed already, something may still come.
    if (endpointId !== undefined) return this.endpoints.get(endpointId)?.receive(command, entry);
    const { error, authChallenge } = command;
    if (error?.requestId === NO_REQUEST) {
      const cause = error.error === SERVER_ERROR.authentication ? 'authentication' : 'lost';
      return this.end(cause, error.message);
    }
    const requestId = answeredRequest(command);
    if (requestId !== undefined) return this.answer(requestId, command);
    if (authChallenge !== undefined) void answerChallenge(this.link, this.settings);
  }

  private answer(requestId: bigint, command: BaseCommand): void {
    const { error, producerSuccess } = command;
    const onAnswer = this.answers.get(requestId);
    if (producerSuccess?.producerReady !== false) this.answers.delete(requestId);
    onAnswer?.(error === undefined ? { type: 'command', command } : refused(error.error, error.message));
  }

  private finish(end: ConnectionEnd): void {
    this.ended = end;
    for (const onAnswer of this.answers.values()) onAnswer(unreachable(end.reason));
    this.answers.clear();
    for (const endpoint of this.endpoints.values()) endpoint.disconnected(end);
    this.endpoints.clear();
    this.wake();
  }
}
