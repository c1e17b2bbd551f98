/** The body of a batch: read strictly, its messages judged by their form, all or nothing. */
import { errorAnswer, type TargetAnswer } from './answers.js';
import { isJson, nestingOf, rawElements, rawMembers, stringBytes } from './json-parts.js';
import type { SentMessage, TargetSettings } from './topics.js';

/** A message whose form is right. */
export interface BatchMessage extends SentMessage {
  /** Where the sender wants it; undefined: by its key. */
  readonly partition: number | undefined;
}

/** Go's reader gives up below this. */
const MAX_NESTING = 10_000;
const FIELDS = ['key', 'key_encoding', 'payload', 'payload_encoding', 'partition'];

/** The messages of a body, or the answer that refuses it. */
export function readBatch(body: Uint8Array, settings: TargetSettings): readonly BatchMessage[] | TargetAnswer {
  const messages = decode(body);
  if (typeof messages === 'string') return errorAnswer(400, `invalid json: ${messages}`);
  if (messages.length === 0) return errorAnswer(400, 'messages required');
  const { maxMessages, maxPayloadBytes } = settings;
  if (messages.length > maxMessages) return errorAnswer(400, `too many messages: at most ${maxMessages}`);
  const read: BatchMessage[] = [];
  for (const [index, message] of messages.entries()) {
    const found = readMessage(message);
    if (typeof found === 'string') return errorAnswer(400, `message ${index}: ${found}`);
    if (found.payload.length > maxPayloadBytes) return errorAnswer(413, `message ${index}: message too large`);
    read.push(found);
  }
  return read;
}

/** How many messages a body has, without judging any; undefined where it has no list of them. */
export function countMessages(body: Uint8Array): number | undefined {
  const messages = decode(body);
  return typeof messages === 'string' ? undefined : messages.length;
}

type RawMessage = ReadonlyMap<string, string>;

/** Each message's members, raw and of the right type; or what is wrong. */
function decode(body: Uint8Array): RawMessage[] | string {
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1');
  if (!isJson(text)) return 'it does not parse';
  if (nestingOf(text) > MAX_NESTING) return 'nested too deeply';
  const top = objectOf(text.trim());
  if (top === undefined) return 'it is no object';
  const unknown = [...top.keys()].find((name) => name !== 'messages');
  if (unknown !== undefined) return `unknown field ${JSON.stringify(unknown)}`;
  const list = top.get('messages') ?? 'null';
  if (list === 'null') return [];
  if (!list.startsWith('[')) return 'messages is no array';
  const messages: RawMessage[] = [];
  for (const element of rawElements(list)) {
    const message = objectOf(element);
    if (message === undefined) return 'a message is no object';
    const wrong = [...message].find(([name, value]) => !isField(name, value));
    if (wrong !== undefined) return `field ${JSON.stringify(wrong[0])} is unknown or of another type`;
    messages.push(message);
  }
  return messages;
}

/** An object's members; null is an object without any, as in Go. */
function objectOf(raw: string): Map<string, string> | undefined {
  if (raw === 'null') return new Map();
  return raw.startsWith('{') ? rawMembers(raw) : undefined;
}

function isField(name: string, value: string): boolean {
  if (name === 'payload' || value === 'null') return FIELDS.includes(name);
  if (name === 'partition') return /^-?\d{1,15}$/.test(value);
  return FIELDS.includes(name) && value.startsWith('"');
}

/** A message of the right form, or the end of the text that refuses it. */
function readMessage(message: RawMessage): BatchMessage | string {
  const payload = message.get('payload');
  if (payload === undefined) return 'message required';
  const payloadEncoding = textOf(message, 'payload_encoding');
  if (payloadEncoding !== '' && payloadEncoding !== 'base64') return 'invalid payload_encoding';
  const isRaw = payloadEncoding === '';
  const bytes = isRaw ? Buffer.from(payload, 'latin1') : base64Bytes(payload);
  if (bytes === undefined) return 'invalid payload';
  if (bytes.length === 0) return 'message required';
  const keyEncoding = textOf(message, 'key_encoding');
  if (keyEncoding !== '' && keyEncoding !== 'base64') return 'invalid key_encoding';
  const rawKey = message.get('key') ?? 'null';
  const text = rawKey === 'null' ? '""' : rawKey;
  const key = keyEncoding === '' ? stringBytes(text) : base64Bytes(text);
  if (key === undefined) return 'invalid key';
  const partition = Number(message.get('partition') ?? 'NaN');
  if (partition < 0) return 'invalid partition';
  return { key, payload: bytes, isRaw, partition: Number.isNaN(partition) ? undefined : partition };
}

function textOf(message: RawMessage, name: string): string {
  const raw = message.get(name) ?? 'null';
  return raw === 'null' ? '' : stringBytes(raw).toString('utf8');
}

/** Padded standard base64 in a JSON string, and nothing else. */
function base64Bytes(raw: string): Buffer | undefined {
  if (!raw.startsWith('"')) return undefined;
  const text = stringBytes(raw).toString('latin1');
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}
