/**
 * A target in memory: what a broker with batch produce answers to the requests that a sender makes, by the rules of its
 * API: the order of its checks, its texts, all or nothing.
 */
import type { HttpAnswer, SenderRequest } from '../../src/sender/index.js';
import { codecs } from '../support/codecs.js';
import { rawElements, rawMembers } from './raw-json.js';

/** A record as it is stored; bytes as Latin-1 text, so that they compare and print. */
export interface Stored {
  readonly key: string;
  readonly payload: string;
}

export interface TargetOptions {
  maxMessages: 100 | 1000;
  maxBodyBytes: number;
  zstd: boolean;
  /** Releases before batch produce have no such route. */
  hasBatch: boolean;
  /** Releases before remote children serve no `parent_id`. */
  servesIds: boolean;
  topicId: string;
  exists: boolean;
  isStub: boolean;
  mayProduce: boolean;
  password: 'good' | 'bad';
  children: readonly object[];
  /** Records that its schema refuses. */
  refuses: (payload: string, isRaw: boolean) => boolean;
}

const GOOD: TargetOptions = {
  maxMessages: 1000,
  maxBodyBytes: 16 * 1024 * 1024,
  zstd: true,
  hasBatch: true,
  servesIds: true,
  topicId: '00000000000000aa',
  exists: true,
  isStub: false,
  mayProduce: true,
  password: 'good',
  children: [],
  refuses: () => false,
};

export class Target {
  readonly options: TargetOptions;
  readonly stored: Stored[] = [];

  constructor(options: Partial<TargetOptions> = {}) {
    this.options = { ...GOOD, ...options };
  }

  handle(request: SenderRequest): HttpAnswer {
    const { exists, hasBatch, mayProduce, password } = this.options;
    if (!request.authorized || password === 'bad') return failure(401, 'authentication required');
    if (request.path === '/v1/users') return failure(403, 'not allowed');
    if (request.method === 'POST') {
      if (!hasBatch) return goNotFound();
      return mayProduce ? this.produce(request) : failure(403, 'produce not allowed on topic');
    }
    if (!exists) return failure(404, 'topic not found');
    return request.path.endsWith('/children') ? this.listing() : this.describe();
  }

  private listing(): HttpAnswer {
    const { servesIds, topicId, children } = this.options;
    return json(200, { parent: 'orders', ...(servesIds ? { parent_id: topicId } : {}), children });
  }

  private describe(): HttpAnswer {
    return json(200, { name: 'orders', id: this.options.topicId, partitions: 3, created_at: 1_700_000_000 });
  }

  private produce({ body = new Uint8Array(), encoding }: SenderRequest): HttpAnswer {
    const { zstd, maxBodyBytes } = this.options;
    if (body.length > maxBodyBytes) return failure(413, 'request body too large');
    if (encoding === undefined) return this.batch(body);
    if (!zstd) return failure(400, 'invalid json: unexpected character');
    return this.batch(codecs.zstd.decompress(body, undefined, maxBodyBytes));
  }

  private batch(body: Uint8Array): HttpAnswer {
    const text = Buffer.from(body).toString('latin1');
    const top = rawMembers(text);
    const messages = rawElements(top.get('messages') ?? '[]').map(rawMembers);
    if (messages.length === 0) return failure(400, 'messages required');
    if (messages.length > this.options.maxMessages) return failure(400, `too many messages: ${messages.length}`);
    const found = messages.map((message, index) => this.judge(message, index));
    const wrong = found.find((one): one is HttpAnswer => 'status' in one);
    if (wrong !== undefined) return wrong;
    if (!this.options.exists) return failure(404, 'topic not found');
    if (this.options.isStub) return failure(409, 'topic is a remote child');
    this.stored.push(...(found as Stored[]));
    return json(202, { accepted: found.length });
  }

  private judge(message: ReadonlyMap<string, string>, index: number): Stored | HttpAnswer {
    const payload = message.get('payload');
    const isRaw = message.get('payload_encoding') === undefined;
    if (payload === undefined || payload === '""') return failure(400, `message ${index}: message required`);
    const bytes = isRaw ? payload : fromBase64(payload);
    if (bytes.length > 1024 * 1024) return failure(413, `message ${index}: message too large`);
    if (this.options.refuses(bytes, isRaw)) return failure(400, `message ${index}: invalid argument`);
    const key = message.get('key') ?? '""';
    return { key: message.has('key_encoding') ? fromBase64(key) : keyText(key), payload: bytes };
  }
}

function fromBase64(raw: string): string {
  return Buffer.from(JSON.parse(raw) as string, 'base64').toString('latin1');
}

/** The bytes of a key that came as a JSON string. */
function keyText(raw: string): string {
  const utf8 = Buffer.from(raw, 'latin1').toString('utf8');
  return Buffer.from(JSON.parse(utf8) as string, 'utf8').toString('latin1');
}

export function json(status: number, value: object, headers: { retryAfter?: string } = {}): HttpAnswer {
  return answer(status, 'application/json', `${JSON.stringify(value)}\n`, headers);
}

export function failure(status: number, error: string, headers: { retryAfter?: string } = {}): HttpAnswer {
  return json(status, { error }, headers);
}

/** Something in front of the target. */
export function edge(status: number, headers: { retryAfter?: string } = {}): HttpAnswer {
  return answer(status, 'text/html', '<html>no</html>', headers);
}

export function goNotFound(): HttpAnswer {
  return answer(404, 'text/plain; charset=utf-8', '404 page not found\n');
}

export function answer(
  status: number,
  contentType: string,
  body: string,
  headers: { retryAfter?: string } = {},
): HttpAnswer {
  return { type: 'answer', status, contentType, retryAfter: headers.retryAfter, body: Buffer.from(body) };
}
