/**
 * The target of the fake server without its network: requests of the machine in, outcomes for it out. Every topic that
 * is asked for is there, and all are alike.
 */
import type { HttpAnswer, SenderRequest } from '../../src/sender/index.js';
import {
  type AnswerOptions,
  edgeAnswer,
  errorAnswer,
  jsonAnswer,
  routeMissing,
  type TargetAnswer,
  TargetBroker,
  type TargetChild,
  textAnswer,
  topicOf,
} from '../../src/testing/index.js';
import { codecs } from '../support/codecs.js';
import { type Stored, textOf } from './schedule.js';

export interface TargetOptions {
  maxMessages: 100 | 1000;
  zstd: boolean;
  /** Releases before remote children serve no `parent_id`. */
  servesIds: boolean;
  topicId: string;
  children: readonly TargetChild[];
  password: 'good' | 'bad';
  /** Records that its schema refuses. */
  refuses: (payload: string, isRaw: boolean) => boolean;
}

const AUTHORIZATION = `Basic ${Buffer.from('sender:good').toString('base64')}`;

export class Target {
  readonly options: TargetOptions = {
    maxMessages: 1000,
    zstd: true,
    servesIds: true,
    topicId: '00000000000000aa',
    children: [],
    password: 'good',
    refuses: () => false,
  };
  private readonly broker = new TargetBroker((body, most) => codecs.zstd.decompress(body, undefined, most));
  private readonly topic = topicOf('orders', {
    refuses: ({ payload, isRaw }) => this.options.refuses(textOf(payload), isRaw),
  });
  private readonly user = { password: 'good', isAdmin: false, grants: [{ action: 'produce', topic: '*' }] as const };

  constructor() {
    this.broker.users.set('sender', this.user);
    this.broker.settings.throttlesLogins = false;
  }

  /** Of all its topics, one after the other; there is but `orders` where a test names no other. */
  get stored(): Stored[] {
    const messages = [...this.broker.topics.keys()].flatMap((topic) => this.broker.stored(topic));
    return messages.map(({ key, payload }) => ({ key: textOf(key), payload: textOf(payload) }));
  }

  handle({ method, path, authorized, encoding, body = new Uint8Array() }: SenderRequest): HttpAnswer {
    const { maxMessages, zstd, servesIds, topicId, children, password } = this.options;
    Object.assign(this.broker.settings, { maxMessages, readsEncodings: zstd, servesIds });
    Object.assign(this.topic, { id: topicId, children });
    const [, , , topic] = path.split('/');
    if (topic !== undefined) this.broker.topics.set(topic, this.topic);
    this.user.password = password;
    const headers = {
      authorization: authorized ? AUTHORIZATION : undefined,
      'content-type': 'application/json',
      'content-encoding': encoding,
    };
    return outcome(this.broker.handle({ method, path, headers }, body, 0));
  }
}

function outcome({ status, headers, body }: TargetAnswer): HttpAnswer {
  return { type: 'answer', status, contentType: headers['content-type'], retryAfter: headers['retry-after'], body };
}

export function json(status: number, value: object, options?: AnswerOptions): HttpAnswer {
  return outcome(jsonAnswer(status, value, options));
}

export function failure(status: number, error: string, options?: AnswerOptions): HttpAnswer {
  return outcome(errorAnswer(status, error, options));
}

/** Something in front of the target. */
export function edge(status: number, options?: AnswerOptions): HttpAnswer {
  return outcome(edgeAnswer(status, options));
}

export function goNotFound(): HttpAnswer {
  return outcome(routeMissing());
}

export function answer(status: number, contentType: string, body: string, options?: AnswerOptions): HttpAnswer {
  return outcome(textAnswer(status, contentType, body, options));
}
