/** Reading what a target answered: what is shaped like the target's own answers, and what something in between said. */
import type { HttpAnswer, HttpOutcome, SenderRequest } from './ports.js';

/** Answers to produce requests are read so far, answers to reads so far; in bytes. */
const PRODUCE_ANSWER_BYTES = 64 * 1024;
const READ_ANSWER_BYTES = 1024 * 1024;

/** The longest that a target's `Retry-After` is heeded. */
export const MAX_RETRY_AFTER_MS = 60_000;

/** What Go's router answers where no route is. */
const GO_NOT_FOUND = '404 page not found\n';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** `POST /v1/topics/{topic}/produce/batch` with a body. */
export function produceRequest(
  topic: string,
  body: Uint8Array,
  pool: SenderRequest['pool'],
  encoding?: 'zstd',
): SenderRequest {
  const path = `/v1/topics/${topic}/produce/batch`;
  const request = { method: 'POST', path, body, authorized: true, pool, answerBytes: PRODUCE_ANSWER_BYTES } as const;
  return encoding === undefined ? request : { ...request, encoding };
}

/** `GET` of a path, on the side pool. */
export function readRequest(path: string, authorized = true): SenderRequest {
  return { method: 'GET', path, authorized, pool: 'side', answerBytes: READ_ANSWER_BYTES };
}

export const listingRequest = (topic: string): SenderRequest => readRequest(`/v1/topics/${topic}/children`);

export const describeRequest = (topic: string, authorized = true): SenderRequest =>
  readRequest(`/v1/topics/${topic}`, authorized);

/** The text of an error of the target's own shape: a JSON object with a string `error`, and nothing else in the body. */
export function errorText(answer: HttpAnswer): string | undefined {
  const error = jsonObject(answer)?.error;
  return typeof error === 'string' ? error : undefined;
}

/** Go's router itself answered: this route is missing. */
export function isGoNotFound({ status, contentType, body }: HttpAnswer): boolean {
  return (
    status === 404 &&
    contentType === 'text/plain; charset=utf-8' &&
    body.length === GO_NOT_FOUND.length &&
    decoder.decode(body) === GO_NOT_FOUND
  );
}

/** How many records a 202 says were stored. */
export function acceptedCount({ body }: HttpAnswer): number | undefined {
  const accepted = parseObject(body)?.accepted;
  return typeof accepted === 'number' ? accepted : undefined;
}

/** The JSON object of an answer that says it is JSON; undefined when it is none. */
export function jsonObject({ contentType, body }: HttpAnswer): Record<string, unknown> | undefined {
  const mediaType = (contentType ?? '').split(';')[0] ?? '';
  return mediaType.trim().toLowerCase() === 'application/json' ? parseObject(body) : undefined;
}

function parseObject(body: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(body));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a children listing says that matters here. */
export interface ChildrenListing {
  readonly hasRemoteChild: boolean;
  /** The topic's own ID, empty when it has none; undefined when the target does not serve IDs. */
  readonly topicId: string | undefined;
}

/** The listing of a topic's children; undefined when the answer is none. */
export function childrenListing(outcome: HttpOutcome): ChildrenListing | undefined {
  if (outcome.type !== 'answer' || outcome.status !== 200) return undefined;
  const listing = jsonObject(outcome);
  if (listing === undefined || typeof listing.parent !== 'string' || !Array.isArray(listing.children)) return undefined;
  const children: readonly unknown[] = listing.children;
  return {
    hasRemoteChild: children.some((child) => isObject(child) && child.remote !== undefined && child.remote !== null),
    topicId: typeof listing.parent_id === 'string' ? listing.parent_id : undefined,
  };
}

/** How a read failed, by what it says of the link; `unknown` for an answer that fits nowhere. */
export type ReadClass =
  | 'destination_refused'
  | 'tls_failed'
  | 'redirect_refused'
  | 'throttled'
  | 'unavailable'
  | 'edge'
  | 'auth_failed'
  | 'forbidden'
  | 'target_missing'
  | 'unknown';

/** The class of a read that failed; undefined for a 200. */
export function readClass(outcome: HttpOutcome): ReadClass | undefined {
  if (outcome.type === 'refused') return 'destination_refused';
  if (outcome.type === 'tls') return 'tls_failed';
  if (outcome.type !== 'answer') return 'unavailable';
  const { status } = outcome;
  if (status === 200) return undefined;
  if (status >= 300 && status < 400) return 'redirect_refused';
  if (status === 429) return 'throttled';
  if (status >= 500 || status === 408) return 'unavailable';
  if (errorText(outcome) === undefined) return 'edge';
  if (status === 401) return 'auth_failed';
  if (status === 403) return 'forbidden';
  return status === 404 ? 'target_missing' : 'unknown';
}

/**
 * How long a `Retry-After` asks to wait, in milliseconds: whole seconds, or a date in the one form that HTTP still
 * allows to be sent. 0 for anything else, at most a minute. Dates are a difference to the target's own clients, which
 * read seconds only: a proxy in front of it may well send one.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number {
  const text = (header ?? '').trim();
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : (httpDateMs(text) ?? nowMs) - nowMs;
  return Math.min(MAX_RETRY_AFTER_MS, Math.max(0, waitMs));
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const IMF_FIXDATE = /^([A-Z][a-z]{2}), (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT$/;
const DAY_MS = 86_400_000;

/** `Sun, 06 Nov 1994 08:49:37 GMT` in milliseconds since the epoch; undefined when it is no such date. */
function httpDateMs(text: string): number | undefined {
  const [, weekday = '', ...parts] = IMF_FIXDATE.exec(text) ?? [];
  const [day = 0, , year = 0, hour = 0, minute = 0, second = 0] = parts.map(Number);
  const month = MONTHS.indexOf(parts[1] ?? '');
  if (month < 0 || day < 1 || day > monthDays(year, month) || hour > 23 || minute > 59 || second > 60) return undefined;
  let days = day - 1 + yearStart(year);
  for (let earlier = 0; earlier < month; earlier++) days += monthDays(year, earlier);
  // The epoch began on a Thursday.
  if (DAYS[(((days + 4) % 7) + 7) % 7] !== weekday) return undefined;
  return days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000;
}

/** Days from the epoch to the first of January. */
function yearStart(year: number): number {
  const leaps = (y: number) => Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400);
  return (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
}

function monthDays(year: number, month: number): number {
  if (month !== 1) return [3, 5, 8, 10].includes(month) ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}
