/** Gives a request its answer over the network, or the fault that stands in its place. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { jsonAnswer, type TargetAnswer } from './answers.js';
import type { SeenRequest, TargetFault } from './faults.js';

/** After an early answer, the rest of an upload is let in so long, in milliseconds, so that the answer is not lost with it. */
const LINGER_MS = 500;

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly seen: SeenRequest;
  /** Lets the target take the request. */
  readonly run: () => TargetAnswer;
  /** Ends with the target. */
  readonly life: AbortSignal;
}

/** Resolves once nothing is left to be done; rejects when the target goes down meanwhile. */
export async function reply(exchange: Exchange, fault: TargetFault | undefined): Promise<void> {
  if (fault === undefined) return send(exchange, exchange.run());
  const stored = 'stores' in fault && fault.stores === true ? exchange.run() : undefined;
  switch (fault.type) {
    case 'answer':
      return send(exchange, fault.answer);
    case 'reset':
      exchange.response.destroy();
      return;
    case 'silent':
      return;
    case 'slow':
      await sleep(fault.ms, undefined, { signal: exchange.life, ref: false });
      return send(exchange, stored ?? exchange.run());
    case 'accepted': {
      const answer = exchange.run();
      return send(exchange, answer.status === 202 ? jsonAnswer(202, { accepted: fault.count }) : answer);
    }
    case 'cutAnswer':
      return sendPart(exchange, exchange.run(), fault.bytes);
  }
}

/** The target's answer to an upload that it did not read to its end: the connection is of no more use. */
export function replyToCut(exchange: Exchange): void {
  exchange.response.setHeader('connection', 'close');
  send(exchange, exchange.run());
  setTimeout(() => exchange.request.socket.destroy(), LINGER_MS).unref();
}

function send({ request, response, seen }: Exchange, { status, headers, body }: TargetAnswer): void {
  if (response.destroyed) return;
  seen.status = status;
  response.writeHead(status, { ...headers, 'content-length': body.length });
  response.end(body);
  // What has not been read of the body would stand before the next request.
  request.resume();
}

function sendPart({ response, seen }: Exchange, { status, headers, body }: TargetAnswer, bytes: number): void {
  if (response.destroyed) return;
  seen.status = status;
  response.writeHead(status, { ...headers, 'content-length': body.length });
  response.flushHeaders();
  response.write(body.subarray(0, Math.min(bytes, body.length - 1)), () => response.destroy());
}
