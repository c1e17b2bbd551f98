/** What one command opens and many updates follow, until it is closed: layout sessions and namespace watches. */
import { type Command, unreachable } from './commands.js';
import type { BaseCommand } from './commands_pb.js';
import type { Connection, Endpoint } from './connection.js';
import { Gate } from './gate.js';
import { after } from './time.js';
import type { BrokerRefusal, Closed, ConnectionEnd, Refusal, Session, Unsupported } from './types.js';

/** What an update says. */
export type StreamRead<Update> =
  | { readonly type: 'update'; readonly update: Update }
  /** The broker ends the stream. */
  | BrokerRefusal
  | { readonly type: 'malformed'; readonly reason: string };

/** How the two kinds differ. */
export interface StreamKind<Update> {
  opening(id: bigint): Command;
  closing(id: bigint): Command;
  read(command: BaseCommand): StreamRead<Update>;
}

export interface StreamEvents<Update> {
  onUpdate(update: Update): void;
  onClosed(closed: Closed): void;
}

export type StreamResult<Update> =
  | { readonly type: 'opened'; readonly session: Session; readonly first: Update }
  | Refusal
  | Unsupported;

/** Opens a stream and waits for its first update. */
export function openStream<Update>(
  connection: Connection,
  kind: StreamKind<Update>,
  events: StreamEvents<Update>,
): Promise<StreamResult<Update>> {
  if (!connection.hasScalableTopics) {
    return Promise.resolve({ type: 'unsupported', reason: 'the broker has no scalable topics' });
  }
  return new Promise((resolve) => {
    new Stream(connection, kind, events, resolve).open();
  });
}

class Stream<Update> implements Session, Endpoint {
  private readonly id: bigint;
  private state: 'opening' | 'open' | 'closed' = 'opening';
  /** It was closed from here: no event comes any more. */
  private isSilent = false;
  private cancelTimeout = () => {};
  private readonly gate = new Gate();

  constructor(
    private readonly connection: Connection,
    private readonly kind: StreamKind<Update>,
    private readonly events: StreamEvents<Update>,
    private readonly resolve: (result: StreamResult<Update>) => void,
  ) {
    this.id = connection.newId();
  }

  get lastHeardMs(): number {
    return this.connection.lastHeardMs;
  }

  open(): void {
    const { ended, settings } = this.connection;
    if (ended !== undefined) return this.disconnected(ended);
    this.connection.attach(this.id, this);
    this.cancelTimeout = after(settings.clock, settings.requestTimeoutMs, () => {
      this.connection.send(this.kind.closing(this.id));
      this.fail(unreachable(`no answer within ${settings.requestTimeoutMs} ms`));
    });
    this.connection.send(this.kind.opening(this.id));
  }

  close(): void {
    this.isSilent = true;
    if (this.state === 'closed') return;
    this.release();
    this.connection.send(this.kind.closing(this.id));
  }

  receive(command: BaseCommand): void {
    const read = this.kind.read(command);
    if (read.type === 'malformed') return this.connection.end('protocol', read.reason);
    if (read.type === 'refused') return this.state === 'open' ? this.closed(read) : this.fail(read);
    const { update } = read;
    if (this.state === 'open') return this.tell(() => this.events.onUpdate(update));
    this.state = 'open';
    this.cancelTimeout();
    this.gate.open();
    this.resolve({ type: 'opened', session: this, first: update });
  }

  disconnected(end: ConnectionEnd): void {
    if (this.state === 'opening') this.fail(unreachable(end.reason));
    else this.closed({ type: 'disconnected', ...end });
  }

  /** It never opened. */
  private fail(refusal: Refusal): void {
    this.release();
    this.resolve(refusal);
  }

  private closed(closed: Closed): void {
    this.release();
    this.tell(() => this.events.onClosed(closed));
  }

  private release(): void {
    this.state = 'closed';
    this.cancelTimeout();
    this.connection.detach(this.id);
  }

  private tell(event: () => void): void {
    this.gate.pass(() => {
      if (!this.isSilent) event();
    });
  }
}
