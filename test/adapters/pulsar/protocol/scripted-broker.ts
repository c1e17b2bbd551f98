/** A broker on loopback that answers by a script, and keeps what it is told and in which pieces. */

import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { type Command, decodeCommand, encodeCommand } from '../../../../src/adapters/pulsar/protocol/commands.js';
import type { BaseCommand } from '../../../../src/adapters/pulsar/protocol/commands_pb.js';
import { encodeEntryFrame, encodeFrame, FrameDecoder } from '../../../../src/adapters/pulsar/protocol/frames.js';
import {
  createPulsarClient,
  type PulsarClient,
  type PulsarClientOptions,
} from '../../../../src/adapters/pulsar/protocol/index.js';

type Name = Exclude<keyof BaseCommand, 'type' | '$typeName' | '$unknown'>;

/** What to do with a command: answers go out in one write. */
type Script = {
  readonly [N in Name]?: (body: NonNullable<BaseCommand[N]>, peer: Peer) => Command | readonly Command[] | undefined;
};

/** One connection of a client, as its broker sees it. */
export class Peer {
  /** What came in, pings left out. */
  readonly commands: BaseCommand[] = [];
  /** What came in behind SEND. */
  readonly entries: Uint8Array[] = [];
  pings = 0;
  pongs = 0;
  hasEnded = false;
  /** The commands of each piece that the socket brought. */
  readonly pieces: Name[][] = [];

  constructor(readonly socket: Socket) {}

  send(...commands: readonly Command[]): void {
    this.socket.write(Buffer.concat(commands.map((command) => encodeFrame(encodeCommand(command)))));
  }

  sendEntry(command: Command, bytes: Uint8Array): void {
    const pieces = encodeEntryFrame(encodeCommand(command), { head: bytes, payload: new Uint8Array() });
    this.socket.write(Buffer.concat(pieces));
  }

  /** All that came in of one kind. */
  of<N extends Name>(name: N): readonly NonNullable<BaseCommand[N]>[] {
    return this.commands.flatMap((command) => command[name] ?? []) as readonly NonNullable<BaseCommand[N]>[];
  }
}

export interface ScriptedBroker {
  readonly url: string;
  readonly peers: readonly Peer[];
  /** Takes no new connections. */
  close(): void;
  /** All that came in of one kind, on any connection. */
  of<N extends Name>(name: N): readonly NonNullable<BaseCommand[N]>[];
}

/** Starts one that ends with the test. What the script leaves out is granted; the topics are its own. */
export async function scriptedBroker(script: Script = {}): Promise<ScriptedBroker> {
  const peers: Peer[] = [];
  const server = createServer((socket) => {
    const peer = new Peer(socket);
    peers.push(peer);
    const all = { ...granting(url), ...script } as Record<string, (body: unknown, peer: Peer) => unknown>;
    const decoder = new FrameDecoder(10_000_000);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      peer.hasEnded = true;
    });
    socket.on('data', (chunk) => {
      const names: Name[] = [];
      peer.pieces.push(names);
      decoder.push(chunk, ({ command: bytes, entry }) => {
        const command = decodeCommand(bytes);
        const name = Object.keys(command).find((key) => !['type', '$typeName', '$unknown'].includes(key)) as Name;
        names.push(name);
        if (name === 'ping') peer.pings++;
        else if (name === 'pong') peer.pongs++;
        else peer.commands.push(command);
        if (name === 'send') peer.entries.push(entry);
        peer.send(...([all[name]?.(command[name], peer) ?? []].flat() as Command[]));
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `pulsar://127.0.0.1:${(server.address() as AddressInfo).port}`;
  onTestFinished(() => {
    for (const { socket } of peers) socket.destroy();
    server.close();
  });
  return { url, peers, close: () => void server.close(), of: (name) => peers.flatMap((peer) => peer.of(name)) };
}

/** Grants everything. Pings are not answered: who tests silence needs that. */
function granting(url: string): Script {
  let stored = 0n;
  return {
    connect: () => connected(),
    lookup: ({ requestId }) => lookedUp(requestId, url),
    producer: ({ requestId, producerName }) => ({
      producerSuccess: { requestId, producerName: producerName || 'made' },
    }),
    send: ({ producerId, sequenceId }) => ({
      sendReceipt: { producerId, sequenceId, messageId: { ledgerId: 1n, entryId: stored++ } },
    }),
    closeProducer: ({ requestId }) => ({ success: { requestId } }),
    subscribe: ({ requestId }) => ({ success: { requestId } }),
    closeConsumer: ({ requestId }) => ({ success: { requestId } }),
  };
}

export function connected(maxMessageSize = 5 * 1024 * 1024): Command {
  const featureFlags = { supportsScalableTopics: true };
  return { connected: { serverVersion: 'scripted', protocolVersion: 21, maxMessageSize, featureFlags } };
}

export function lookedUp(requestId: bigint, brokerServiceUrl: string): Command {
  return { lookupResponse: { requestId, response: 1, brokerServiceUrl } };
}

/** An answer that a test gives when it likes. */
export const nothing = () => undefined;

/** A client that is closed with the test. */
export function clientOf(url: string, options: Partial<PulsarClientOptions> = {}): PulsarClient {
  const client = createPulsarClient({ serviceUrls: [url], ...options });
  onTestFinished(() => client.close());
  return client;
}
