/** Servers on loopback, and states to send to them. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { ExchangeRequest, ExchangeResult, PeerState } from '../../src/convergence/index.js';
import type { ExchangeHandler } from '../../src/ports/index.js';

/** Serves until the test ends; returns the address, without a path. */
export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A state of two cells that meet at 0x8000, with changes. */
export function stateOf(cluster: string, changes: Partial<PeerState> = {}): PeerState {
  return {
    cluster,
    epoch: 1,
    revision: 1,
    shape: {
      cells: [
        { range: { start: 0, end: 0x7fff }, entryBucketSplits: [0x8000] },
        { range: { start: 0x8000, end: 0xffff }, entryBucketSplits: [] },
      ],
    },
    caps: { maxSegments: 64, maxEntryBucketsPerSegment: 32 },
    protocolVersion: 1,
    sentAtMs: 1_700_000_000_000,
    ...changes,
  };
}

export function requestFor(topic: string, cluster = 'a', changes: Partial<PeerState> = {}): ExchangeRequest {
  return { topic, state: stateOf(cluster, changes) };
}

/** What happened at a host's side of the exchange. */
export interface RecordingHandler extends ExchangeHandler {
  readonly calls: { readonly from: string; readonly requests: readonly ExchangeRequest[] }[];
}

/** Answers with cluster b's state, or, for the topics named, with what is given for them; writes down every call. */
export function recordingHandler(
  answers: Readonly<Record<string, Omit<ExchangeResult, 'topic'>>> = {},
): RecordingHandler {
  const calls: { from: string; requests: readonly ExchangeRequest[] }[] = [];
  return {
    calls,
    async exchange(from, requests) {
      calls.push({ from, requests });
      return requests.map(({ topic }) => ({ topic, ...(answers[topic] ?? { state: stateOf('b') }) }));
    },
  };
}
