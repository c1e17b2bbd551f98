/**
 * A socket to a broker that carries frames: it corks what one turn of the event loop writes, pings, and ends once, for
 * a reason. What the commands mean is the connection's matter.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect as connectTls } from 'node:tls';
import { messageOf } from '../../../errors.js';
import { type Command, decodeCommand, encodeCommand } from './commands.js';
import type { BaseCommand } from './commands_pb.js';
import { encodeFrame, FrameDecoder } from './frames.js';
import type { ServiceUrl } from './service-url.js';
import type { Settings } from './settings.js';
import { after } from './time.js';
import type { ConnectionEnd } from './types.js';

/** What a broker takes and sends until it says otherwise, in bytes. */
export const DEFAULT_MAX_MESSAGE_BYTES = 5 * 1024 * 1024;

/** Room in a frame for a command, and for the broker's own header of an entry. */
const FRAME_MARGIN_BYTES = 64 * 1024;

export interface LinkHandler {
  /** The socket, and TLS where it is used, are up. */
  onUp(): void;
  onCommand(command: BaseCommand, entry: Uint8Array): void;
  /** Once; nothing comes afterwards. */
  onEnd(end: ConnectionEnd): void;
}

export class Link {
  /** When the last byte came in, by the clock. */
  lastHeardMs: number;
  private readonly socket: Socket;
  private readonly decoder = new FrameDecoder(DEFAULT_MAX_MESSAGE_BYTES + FRAME_MARGIN_BYTES);
  private isCorked = false;
  private hasEnded = false;
  private cancelTick = () => {};
  private readonly onClosing = () => this.end('closedHere', 'the client was closed');

  /** `handler` may be replaced at any time. */
  constructor(
    url: ServiceUrl,
    private readonly settings: Settings,
    public handler: LinkHandler,
  ) {
    this.lastHeardMs = settings.clock.now();
    this.socket = url.tls ? dialTls(url, settings) : connectTcp({ host: url.host, port: url.port });
    this.socket.setNoDelay(true);
    settings.closing.addEventListener('abort', this.onClosing);
    this.socket.once(url.tls ? 'secureConnect' : 'connect', () => this.handler.onUp());
    this.socket.on('data', (chunk: Uint8Array) => this.receive(chunk));
    this.socket.on('error', (error) => this.end('lost', messageOf(error)));
    this.socket.on('close', () => this.end('lost', this.decoder.end() ?? 'closed by the other side'));
  }

  /** The broker's largest message, in bytes. What it stored while another one held may be up to the default. */
  limitFrames(maxMessageBytes: number): void {
    this.decoder.maxFrameBytes = Math.max(maxMessageBytes, DEFAULT_MAX_MESSAGE_BYTES) + FRAME_MARGIN_BYTES;
  }

  send(command: Command): void {
    this.write([encodeFrame(encodeCommand(command))]);
  }

  /** Writes pieces of frames, all that one turn of the event loop brings in one go. */
  write(pieces: readonly Uint8Array[]): void {
    if (this.hasEnded) return;
    if (!this.isCorked) {
      this.isCorked = true;
      this.socket.cork();
      setImmediate(() => {
        this.isCorked = false;
        this.socket.uncork();
      });
    }
    for (const piece of pieces) this.socket.write(piece);
  }

  /** Pings from now on, and ends when the other side is silent. */
  keepAlive(): void {
    const { clock, keepAliveMs } = this.settings;
    const silentMs = clock.now() - this.lastHeardMs;
    if (silentMs >= 2 * keepAliveMs) {
      // If this process itself stood still, what came in meanwhile is read before this runs.
      setImmediate(() => this.endIfSilent());
      return;
    }
    this.send({ ping: {} });
    this.cancelTick = after(clock, Math.min(keepAliveMs, 2 * keepAliveMs - silentMs), () => this.keepAlive());
  }

  /** Ends it at once; what is not written yet is lost. */
  end(cause: ConnectionEnd['cause'], reason: string): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.cancelTick();
    this.settings.closing.removeEventListener('abort', this.onClosing);
    this.socket.destroy();
    this.handler.onEnd({ cause, reason });
  }

  private endIfSilent(): void {
    if (this.hasEnded) return;
    const { clock, keepAliveMs } = this.settings;
    if (clock.now() - this.lastHeardMs < 2 * keepAliveMs) this.keepAlive();
    else this.end('silent', `not one byte came in for ${2 * keepAliveMs} ms`);
  }

  private receive(chunk: Uint8Array): void {
    this.lastHeardMs = this.settings.clock.now();
    const fault = this.decoder.push(chunk, ({ command, entry }) => this.take(command, entry));
    if (fault !== undefined) this.end('protocol', fault);
  }

  private take(bytes: Uint8Array, entry: Uint8Array): void {
    if (this.hasEnded) return;
    let command: BaseCommand;
    try {
      command = decodeCommand(bytes);
    } catch (error) {
      return this.end('protocol', `a command that cannot be read: ${messageOf(error)}`);
    }
    if (command.ping !== undefined) this.send({ pong: {} });
    else this.handler.onCommand(command, entry);
  }
}

function dialTls({ host, port }: ServiceUrl, { tls: { ca, serverName = host } }: Settings): Socket {
  return connectTls({
    host,
    port,
    // An address cannot be asked for by name, but the certificate may still be one for it.
    ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
    ...(ca === undefined ? {} : { ca }),
    checkServerIdentity: (_, certificate) => checkServerIdentity(serverName, certificate),
  });
}
