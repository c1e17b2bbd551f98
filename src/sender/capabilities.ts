/**
 * What a target can take, found out by requests that write nothing: 101 messages without a payload, which any target
 * refuses, and the empty batch compressed. One answer serves a remote on a node, for one check interval.
 */
import { errorText, isGoNotFound, produceRequest, readClass } from './answers.js';
import type { Compress } from './chunk.js';
import type { HttpOutcome, RemoteLimits, SenderRequest } from './ports.js';

/** What every target takes. */
export const DEFAULT_CAPABILITIES: Capabilities = Object.freeze({ maxMessages: 100, zstd: false });

/** What a target takes that was asked and said no to none of it. */
const LARGE_BATCH = 1_000;

const INCONCLUSIVE_RETRY_MS = 30_000;

export interface Capabilities {
  /** Messages of one request. */
  readonly maxMessages: number;
  /** It decodes zstd. */
  readonly zstd: boolean;
}

const encoder = new TextEncoder();
const EMPTY_BATCH = encoder.encode('{"messages":[]}');
const OVERFULL_BATCH = encoder.encode(`{"messages":[${Array(101).fill('{}').join(',')}]}`);

/** A batch without messages: the credential, the grant and the route are good when it is refused for its emptiness. */
export function emptyBatchRequest(topic: string): SenderRequest {
  return produceRequest(topic, EMPTY_BATCH, 'side');
}

/** The class of the answer to the empty batch; undefined when all is well. */
export function emptyBatchClass(outcome: HttpOutcome): ReturnType<typeof readClass> | 'no_batch_produce' {
  if (isRefused(outcome, 'messages required')) return undefined;
  if (outcome.type === 'answer' && isGoNotFound(outcome)) return 'no_batch_produce';
  return readClass(outcome) ?? 'unknown';
}

/** One probe of a remote: its requests one after the other, and what they came to. */
export class CapabilityProbe {
  private maxMessages: number | undefined;

  constructor(
    private readonly topic: string,
    /** Absent when the remote does not ask for compression. */
    private readonly compress: Compress | undefined,
  ) {}

  first(): SenderRequest {
    return produceRequest(this.topic, OVERFULL_BATCH, 'side');
  }

  /** What follows from an answer: the next request, what was found, or `inconclusive`. */
  answered(outcome: HttpOutcome): SenderRequest | Capabilities | 'inconclusive' {
    if (this.maxMessages === undefined) return this.sized(outcome);
    const { maxMessages } = this;
    if (isRefused(outcome, 'messages required')) return { maxMessages, zstd: true };
    const isUndecoded = outcome.type === 'answer' && outcome.status === 415;
    return isUndecoded || isRefused(outcome, 'invalid json', 'prefix') ? { maxMessages, zstd: false } : 'inconclusive';
  }

  private sized(outcome: HttpOutcome): SenderRequest | Capabilities | 'inconclusive' {
    if (isRefused(outcome, 'message 0: message required')) this.maxMessages = LARGE_BATCH;
    else if (isRefused(outcome, 'too many messages', 'prefix')) this.maxMessages = DEFAULT_CAPABILITIES.maxMessages;
    else return 'inconclusive';
    if (this.compress === undefined) return { maxMessages: this.maxMessages, zstd: false };
    return produceRequest(this.topic, this.compress(EMPTY_BATCH), 'side', 'zstd');
  }
}

function isRefused(outcome: HttpOutcome, text: string, match: 'whole' | 'prefix' = 'whole'): boolean {
  if (outcome.type !== 'answer' || outcome.status !== 400) return false;
  const error = errorText(outcome);
  return match === 'whole' ? error === text : error?.startsWith(text) === true;
}

/** What is known of the target of one remote, for one remote ID and credential version. */
export class KnownCapabilities {
  current: Capabilities = DEFAULT_CAPABILITIES;
  private probeAtMs = 0;
  private probing: CapabilityProbe | undefined;

  /** A probe to run before the next request, unless it is known, or somebody is finding out. */
  begin(topic: string, limits: RemoteLimits, compress: Compress, nowMs: number): CapabilityProbe | undefined {
    if (this.probing !== undefined || nowMs < this.probeAtMs) return undefined;
    this.probing = new CapabilityProbe(topic, limits.compression === 'zstd' ? compress : undefined);
    return this.probing;
  }

  /** A probe has ended. One that was overtaken, by a new credential or by what a target refused, counts for nothing. */
  end(probe: CapabilityProbe, found: Capabilities | 'inconclusive', limits: RemoteLimits, nowMs: number): void {
    if (this.probing !== probe) return;
    this.probing = undefined;
    const isKnown = found !== 'inconclusive';
    this.current = isKnown ? found : DEFAULT_CAPABILITIES;
    this.probeAtMs = nowMs + (isKnown ? limits.checkIntervalMs : INCONCLUSIVE_RETRY_MS);
  }

  /** The target refused what it was said to take: nothing but the defaults for one check interval. */
  forget(limits: RemoteLimits, nowMs: number): void {
    this.current = DEFAULT_CAPABILITIES;
    this.probing = undefined;
    this.probeAtMs = nowMs + limits.checkIntervalMs;
  }

  /** Another target, or another credential. */
  reset(): void {
    this.current = DEFAULT_CAPABILITIES;
    this.probing = undefined;
    this.probeAtMs = 0;
  }
}
