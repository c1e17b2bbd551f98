/** The client's options, checked, with their defaults. */
import { IsthmusError, show } from '../../../errors.js';
import type { Clock } from '../../../ports/index.js';
import { checkServiceUrls, type ServiceUrl } from './service-url.js';
import { processClock } from './time.js';
import type { PulsarClientOptions } from './types.js';

export interface Settings {
  readonly serviceUrls: readonly ServiceUrl[];
  /** All connections are of one scheme, which decides between the two URLs that a broker has. */
  readonly isTls: boolean;
  readonly tls: NonNullable<PulsarClientOptions['tls']>;
  readonly token: (() => string | Promise<string>) | undefined;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly maxInFlightBytes: number;
  readonly clock: Clock;
  /** Aborts when the client is closed. */
  readonly closing: AbortSignal;
}

/** The longest time that a timer of JavaScript can wait. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Throws `invalidArgument` for an option outside its range. */
export function readSettings(options: PulsarClientOptions, closing: AbortSignal): Settings {
  const { connectTimeoutMs = 10_000, requestTimeoutMs = 30_000, keepAliveMs = 10_000 } = options;
  const { maxInFlightBytes = 16 * 1024 * 1024, clock = processClock, tls = {}, token } = options;
  checkWhole('connectTimeoutMs', connectTimeoutMs, MAX_TIMER_MS);
  checkWhole('requestTimeoutMs', requestTimeoutMs, MAX_TIMER_MS);
  checkWhole('keepAliveMs', keepAliveMs, 30_000);
  checkWhole('maxInFlightBytes', maxInFlightBytes, Number.MAX_SAFE_INTEGER);
  const serviceUrls = checkServiceUrls(options.serviceUrls);
  const isTls = serviceUrls.some((url) => url.tls);
  const limits = { connectTimeoutMs, requestTimeoutMs, keepAliveMs, maxInFlightBytes };
  return { serviceUrls, isTls, tls, token, ...limits, clock, closing };
}

/** Refuses, as `invalidArgument`, what is no whole number in 1..most. */
export function checkWhole(name: string, value: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return;
  throw new IsthmusError('invalidArgument', `${name} is ${show(value)}: a whole number in 1..${most}`);
}
