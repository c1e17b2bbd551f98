/**
 * Who owns a topic, and the connections to the brokers: two for each, shared by all that is open. A broker is connected
 * to only if its URL is configured or another broker has named it.
 */
import { show } from '../../../errors.js';
import { refused, unreachable } from './commands.js';
import { Connection } from './connection.js';
import { openConnection } from './handshake.js';
import { parseServiceUrl, type ServiceUrl, type Target } from './service-url.js';
import type { Settings } from './settings.js';
import { type Refusal, SERVER_ERROR } from './types.js';

/** What a connection is for. A publish limit stops the reading of the whole connection that it hits. */
export type Purpose = 'sending' | 'control';

/** Numbers of LOOKUP_RESPONSE; any other is a failure. */
const REDIRECT = 0;
const CONNECT = 1;

/** More redirects than this are a circle. */
const MAX_REDIRECTS = 10;

/** How often a topic is looked up whose owner turns out to be none, and the wait before the second time; then twice as long. */
const MAX_LOOKUPS = 5;
const FIRST_WAIT_MS = 100;

export class Brokers {
  /** By purpose and target; those that failed or have ended are replaced when they are met. */
  private readonly connections = new Map<string, Promise<Connection | Refusal>>();
  /** The service URLs, the one that accepted last in front. */
  private serviceUrls: readonly ServiceUrl[];

  constructor(private readonly settings: Settings) {
    this.serviceUrls = settings.serviceUrls;
  }

  /** Does something at the broker that owns a topic, and looks up again while that broker says that it does not. */
  async onOwner<Result extends { readonly type: string }>(
    topic: string,
    purpose: Purpose,
    act: (connection: Connection) => Promise<Result | Refusal>,
  ): Promise<Result | Refusal> {
    for (let waitMs = FIRST_WAIT_MS, lookups = 1; ; waitMs *= 2, lookups++) {
      const target = await this.lookUp(topic);
      const connection = 'url' in target ? await this.connect(target, purpose) : target;
      const result = connection instanceof Connection ? await act(connection) : connection;
      if (!isNotServed(result) || lookups === MAX_LOOKUPS) return result;
      // A client that is closed meanwhile connects to nothing any more.
      await this.settings.clock.sleep(waitMs, this.settings.closing).catch(() => undefined);
    }
  }

  /** A connection to any broker, not for sending: of the service URLs in turn, else one that is there already. */
  async anyBroker(): Promise<Connection | Refusal> {
    let refusal = unreachable('no service URL');
    for (const url of this.serviceUrls) {
      const connection = await this.connect({ url }, 'control');
      if (connection instanceof Connection) {
        this.serviceUrls = [url, ...this.serviceUrls.filter((other) => other !== url)];
        return connection;
      }
      refusal = connection;
    }
    for (const [key, opening] of this.connections) {
      const connection = key.startsWith(keyPrefix('control')) ? await opening : undefined;
      if (connection instanceof Connection && connection.ended === undefined) return connection;
    }
    return refusal;
  }

  /** Where the owner of a topic is to be connected to. */
  private async lookUp(topic: string): Promise<Target | Refusal> {
    let connection = await this.anyBroker();
    let authoritative = false;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      if (!(connection instanceof Connection)) return connection;
      const result = await connection.request('lookupResponse', (requestId) => ({
        lookup: { topic, requestId, authoritative },
      }));
      if (result.type !== 'answered') return result;
      const { answer } = result;
      if (answer.response !== CONNECT && answer.response !== REDIRECT) return refused(answer.error, answer.message);
      const { isTls } = this.settings;
      const named = isTls ? answer.brokerServiceUrlTls : answer.brokerServiceUrl;
      const url = parseServiceUrl(named);
      if (url?.tls !== isTls) return unreachable(`look-up of ${topic}: ${show(named)} is no URL of the scheme in use`);
      if (answer.response === CONNECT) {
        return answer.proxyThroughServiceUrl ? through(connection.target.url, url) : { url };
      }
      connection = await this.connect({ url }, 'control');
      authoritative = answer.authoritative;
    }
    return unreachable(`look-up of ${topic}: more than ${MAX_REDIRECTS} redirects`);
  }

  /** The connection for a purpose, a new one where there is none; whoever else asks meanwhile gets the same. */
  private async connect(target: Target, purpose: Purpose): Promise<Connection | Refusal> {
    if (this.settings.closing.aborted) return unreachable('the client is closed');
    const key = `${keyPrefix(purpose)}${target.url.text} ${target.behind ?? ''}`;
    const opening = this.connections.get(key) ?? openConnection(target, this.settings);
    this.connections.set(key, opening);
    const connection = await opening;
    const isOpen = connection instanceof Connection && connection.ended === undefined;
    if (isOpen) return connection;
    if (this.connections.get(key) === opening) this.connections.delete(key);
    return connection instanceof Connection ? this.connect(target, purpose) : connection;
  }
}

const keyPrefix = (purpose: Purpose) => `${purpose} `;

/** A proxy is connected to in place of the broker, and told which one is meant; a standalone broker is its own. */
function through(serviceUrl: ServiceUrl, broker: ServiceUrl): Target {
  return serviceUrl.text === broker.text ? { url: broker } : { url: serviceUrl, behind: broker.authority };
}

function isNotServed(result: { readonly type: string; readonly code?: number }): boolean {
  return result.type === 'refused' && result.code === SERVER_ERROR.serviceNotReady;
}
