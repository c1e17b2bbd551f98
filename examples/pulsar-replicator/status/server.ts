/**
 * The small HTTP server of the program: the page, the status document, the metrics and a sign of life, for who can reach
 * the address, by default this machine alone. It only tells and changes nothing, so that there is nothing to log in to;
 * what a browser must not do for a foreign site (DNS rebinding, frames, reading across origins) is refused.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { StatusDocument } from './document.js';
import { METRICS_CONTENT_TYPE } from './metrics.js';

export interface StatusServerOptions {
  /** 0 takes any free one. */
  readonly port: number;
  /** The address to listen at; default 127.0.0.1. */
  readonly host?: string;
  /** Names, besides localhost and IP addresses, under which it may be called, for example by a proxy in front of it. */
  readonly names?: readonly string[];
  /** Asked for at every call. */
  status(): StatusDocument;
  /** Prometheus text; see `metricsText`. */
  metrics(): string;
}

export interface StatusServer {
  readonly type: 'listening';
  /** Of the page. */
  readonly url: string;
  /** Resolves when every connection is closed. */
  close(): Promise<void>;
}

/** Why it does not listen: the port is taken, or the address is not one of this machine. */
export interface StatusServerFailure {
  readonly type: 'failed';
  readonly reason: string;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const TEXT = 'text/plain; charset=utf-8';

/** Nothing here may be kept, framed, or read by another site's page. */
const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** Connections that are still busy when the server closes are cut after this time. */
const CLOSE_MS = 1_000;

/** Starts to listen. */
export async function startStatusServer(options: StatusServerOptions): Promise<StatusServer | StatusServerFailure> {
  const { port, host = '127.0.0.1', names = [] } = options;
  const page = pageAnswer(await readFile(new URL('./page.html', import.meta.url), 'utf8'));
  const allowed = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  const server = createServer((request, response) => send(request, response, answer(request, allowed, page, options)));
  try {
    await listen(server, port, host);
  } catch (error) {
    return { type: 'failed', reason: error instanceof Error ? error.message : String(error) };
  }
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    type: 'listening',
    url: `http://${isIP(host) === 6 ? `[${host}]` : host}:${bound}/`,
    close: () => close(server),
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}

function answer(
  { method, url = '/', headers }: IncomingMessage,
  allowed: ReadonlySet<string>,
  page: Answer,
  { status, metrics }: StatusServerOptions,
): Answer {
  if (!isAllowedHost(headers.host, allowed)) {
    return text(421, 'call this server as localhost, by its IP address, or by a configured name');
  }
  if (method !== 'GET' && method !== 'HEAD')
    return { ...text(405, 'only GET and HEAD'), headers: { allow: 'GET, HEAD' } };
  try {
    switch (url.split('?', 1)[0]) {
      case '/':
        return page;
      case '/status.json':
        return { status: 200, type: 'application/json', body: JSON.stringify(status()) };
      case '/metrics':
        return { status: 200, type: METRICS_CONTENT_TYPE, body: metrics() };
      case '/healthz':
        return text(200, 'ok');
      default:
        return text(404, 'there are /, /status.json, /metrics and /healthz');
    }
  } catch (error) {
    return text(500, `the status could not be told: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * A foreign page reaches this server only by a name whose address it has changed (DNS rebinding), and then the browser
 * says that name here. An address cannot be changed in that way.
 */
function isAllowedHost(host: string | undefined, allowed: ReadonlySet<string>): boolean {
  const [, bracketed, plain = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host ?? '') ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  return isIP(plain) === 4 || allowed.has(plain.toLowerCase());
}

function text(status: number, body: string): Answer {
  return { status, type: TEXT, body: `${body}\n` };
}

/** The page, with a policy that runs the parts it has in itself and nothing else, whatever is in the document. */
function pageAnswer(html: string): Answer {
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(html, 'script')}`,
    `style-src ${hashOf(html, 'style')}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    status: 200,
    type: 'text/html; charset=utf-8',
    body: html,
    headers: { 'content-security-policy': policy.join('; ') },
  };
}

/** The hash source of the one inline element of this name. */
function hashOf(html: string, element: 'script' | 'style'): string {
  const content = html.split(`<${element}>`)[1]?.split(`</${element}>`)[0] ?? '';
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}

function send({ method }: IncomingMessage, response: ServerResponse, { status, type, body, headers }: Answer): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    ...COMMON_HEADERS,
    'content-type': type,
    'content-length': bytes.length,
    ...headers,
  });
  response.end(method === 'HEAD' ? undefined : bytes);
}
