/**
 * The rules of a target without its network: requests in, answers out, and in between what it has stored. A request is
 * judged in two steps, as a server does it: its head, and then, only if that is welcome, its body.
 */
import { errorAnswer, jsonAnswer, routeMissing, type TargetAnswer, textAnswer } from './answers.js';
import { type BatchMessage, readBatch } from './batch.js';
import { decodeBody, type OpenZstd } from './decoding.js';
import { nestingOf } from './json-parts.js';
import { MessageLog, type StoredMessage } from './message-log.js';
import { describeTopic, listChildren } from './reading.js';
import { LoginThrottle } from './throttle.js';
import { mayDo, TARGET_RELEASES, type TargetSettings, type TargetTopic, type TargetUser } from './topics.js';

/** The head of a request. */
export interface TargetHead {
  readonly method: string;
  /** With its query, if it has one. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** A batch whose head is welcome. One of the two ends it. */
export interface OpenBatch {
  /** So much is read of the body, and one byte more, to see that it is too large. */
  readonly maxBodyBytes: number;
  /** Judges the body and stores it; `undefined`: its upload was cut. */
  finish(body: Uint8Array | undefined): TargetAnswer;
  /** The batch is not looked at any further. */
  abandon(): void;
}

const MIB = 1024 * 1024;
/** A schema looks no deeper into a message. */
const MAX_MESSAGE_NESTING = 256;
const JSON_TYPES = ['application/json', 'application/octet-stream'];
const NOBODY: TargetUser = { password: '', isAdmin: true, grants: [] };

export class TargetBroker {
  readonly settings: TargetSettings = { ...TARGET_RELEASES['3.2'] };
  readonly topics = new Map<string, TargetTopic>();
  readonly users = new Map<string, TargetUser>();
  private readonly logs = new Map<string, MessageLog>();
  private readonly logins = new LoginThrottle();
  private readonly inFlight = new Map<string, number>();
  private bytesInFlight = 0;

  constructor(private readonly openZstd: OpenZstd) {}

  /** What a topic holds, in the order in which it came. */
  stored(topic: string): readonly StoredMessage[] {
    return this.logs.get(topic)?.messages ?? [];
  }

  /** Forgets what a topic holds, as if it had been made anew. */
  clear(topic: string): void {
    this.logs.delete(topic);
  }

  /** The answer to a request whose body is there at once. */
  handle(head: TargetHead, body: Uint8Array, nowMs: number): TargetAnswer {
    const opened = this.open(head, nowMs);
    return 'finish' in opened ? opened.finish(body) : opened;
  }

  /** The answer to a head, or, for a batch that is welcome, what takes its body. */
  open(head: TargetHead, nowMs: number): TargetAnswer | OpenBatch {
    const caller = this.callerOf(head, nowMs);
    if ('status' in caller) return caller;
    const [path = '', query = ''] = head.path.split('?', 2);
    const [, topic, rest] = /^\/v1\/topics\/([^/]+)(|\/children|\/produce\/batch)$/.exec(path) ?? [];
    if (rest === '/produce/batch' && topic !== undefined && this.settings.hasBatch) {
      return head.method === 'POST' ? this.openBatch(head, query, topic, caller) : methodNotAllowed('POST');
    }
    const read = this.reading(path, topic, rest);
    if (read === undefined) return routeMissing();
    return head.method === 'GET' ? read(caller.user) : methodNotAllowed('GET');
  }

  /** Whose request it is; where security is off, an administrator's. */
  private callerOf({ headers }: TargetHead, nowMs: number): { name: string; user: TargetUser } | TargetAnswer {
    if (!this.settings.isSecure) return { name: '', user: NOBODY };
    const [, encoded] = /^basic +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
    const [, name = '', password = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded ?? '', 'base64').toString()) ?? [];
    const user = this.users.get(name);
    if (user !== undefined && user.password === password) return { name, user };
    if (user !== undefined && this.settings.throttlesLogins && !this.logins.allows(name, nowMs)) {
      return errorAnswer(429, 'too many failed logins');
    }
    return errorAnswer(401, 'authentication required', { headers: { 'www-authenticate': 'Basic realm="narad"' } });
  }

  /** What reads from a path; undefined where there is no such route. */
  private reading(path: string, topic: string | undefined, rest: string | undefined) {
    const { hasUsers, hasListing } = this.settings;
    if (path === '/v1/users' && hasUsers) return (user: TargetUser) => this.listUsers(user);
    if (topic === undefined || (rest !== '' && !(rest === '/children' && hasListing))) return undefined;
    return (user: TargetUser) => {
      if (!mayDo(user, topic)) return errorAnswer(403, 'not allowed on topic');
      const found = this.topics.get(topic);
      if (found === undefined) return errorAnswer(404, 'topic not found');
      if (rest === '') return jsonAnswer(200, describeTopic(topic, found, this.settings));
      return jsonAnswer(200, listChildren(topic, found, this.settings, user.isAdmin));
    };
  }

  private listUsers(user: TargetUser): TargetAnswer {
    if (!user.isAdmin) return errorAnswer(403, 'not allowed');
    return jsonAnswer(200, { users: [...this.users].map(([username, { grants }]) => ({ username, grants })) });
  }

  /** The checks in their order: grant, query, encoding, what is in flight; then the body. */
  private openBatch(
    { headers }: TargetHead,
    query: string,
    topic: string,
    { name, user }: { name: string; user: TargetUser },
  ): TargetAnswer | OpenBatch {
    if (!mayDo(user, topic, 'produce')) return errorAnswer(403, 'produce not allowed on topic');
    const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
    if (!JSON_TYPES.includes(type) && headers['x-narad-client'] === undefined) {
      return errorAnswer(415, 'content type required');
    }
    const parameters = new URLSearchParams(query);
    if (parameters.has('key') || parameters.has('partition')) {
      return errorAnswer(400, 'key and partition belong in the messages');
    }
    const encoding = (headers['content-encoding'] ?? 'identity').toLowerCase();
    const { readsEncodings, maxBodyBytes } = this.settings;
    if (readsEncodings && !['identity', 'zstd', 'gzip'].includes(encoding)) {
      return errorAnswer(415, 'unsupported content encoding');
    }
    const release = this.enter(name, Number(headers['content-length'] ?? 0));
    if ('status' in release) return release;
    return {
      maxBodyBytes,
      abandon: release.end,
      finish: (body) => {
        release.end();
        if (body === undefined) return errorAnswer(400, 'read body: i/o timeout');
        return this.produce(topic, body, readsEncodings ? encoding : 'identity');
      },
    };
  }

  /** Counts a batch in until it ends, if there is room for it. */
  private enter(name: string, bodyBytes: number): TargetAnswer | { end(): void } {
    const { maxInFlightPerUser, maxBodyBytesInFlight } = this.settings;
    const already = this.inFlight.get(name) ?? 0;
    if (maxInFlightPerUser > 0 && already >= maxInFlightPerUser) return errorAnswer(429, 'too many requests in flight');
    const bytes = bodyBytes > MIB ? bodyBytes : 0;
    if (bytes > 0 && maxBodyBytesInFlight > 0 && this.bytesInFlight + bytes > maxBodyBytesInFlight) {
      return errorAnswer(503, 'too many bytes in flight', { retryAfter: '1' });
    }
    this.inFlight.set(name, already + 1);
    this.bytesInFlight += bytes;
    let isOver = false;
    return {
      end: () => {
        if (isOver) return;
        isOver = true;
        this.inFlight.set(name, (this.inFlight.get(name) ?? 1) - 1);
        this.bytesInFlight -= bytes;
      },
    };
  }

  private produce(name: string, sent: Uint8Array, encoding: string): TargetAnswer {
    const body = decodeBody(sent, encoding, this.settings.maxBodyBytes, this.openZstd);
    if ('status' in body) return body;
    const messages = readBatch(body, this.settings);
    if ('status' in messages) return messages;
    // The topic is looked at last, so that what probes ask is answered even where there is none.
    const topic = this.topics.get(name);
    if (topic === undefined) return errorAnswer(404, 'topic not found');
    if (topic.remote !== undefined) return errorAnswer(409, 'topic is a remote child');
    if (topic.fanoutDelayMs > 0) return errorAnswer(409, 'topic is a delay child');
    const refused = messages.findIndex((message) => !isTaken(message, topic));
    if (refused >= 0) return errorAnswer(400, `message ${refused}: invalid argument`);
    const log = this.logs.get(name) ?? new MessageLog();
    this.logs.set(name, log);
    for (const message of messages) log.append(message, topic.partitions);
    return jsonAnswer(202, { accepted: messages.length });
  }
}

function isTaken(message: BatchMessage, topic: TargetTopic): boolean {
  if (message.partition !== undefined && message.partition >= topic.partitions) return false;
  if (message.isRaw && nestingOf(Buffer.from(message.payload).toString('latin1')) > MAX_MESSAGE_NESTING) return false;
  return !topic.refuses(message);
}

function methodNotAllowed(allow: string): TargetAnswer {
  return textAnswer(405, 'text/plain; charset=utf-8', 'Method Not Allowed\n', { headers: { allow } });
}
