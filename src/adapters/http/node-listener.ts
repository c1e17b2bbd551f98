/**
 * A fetch-style handler as a listener of node:http: `createServer(nodeListener(handler))`. The body streams in as the
 * handler reads it, so that the handler's limit is the limit; answers are sent whole.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** How long what is left of a request's body is discarded after an early answer, before the connection is cut. */
const DISCARD_MS = 5_000;

/** Adapts a handler. Its request's signal aborts when the client goes away; a rejection is answered with a bare 500. */
export function nodeListener(
  handler: (request: Request) => Promise<Response>,
): (req: IncomingMessage, res: ServerResponse) => void {
  return (req, res) => {
    const gone = new AbortController();
    res.on('close', () => {
      if (!res.writableFinished) gone.abort();
    });
    res.on('finish', () => discardRest(req));
    void respond(handler, req, res, gone.signal);
  };
}

async function respond(
  handler: (request: Request) => Promise<Response>,
  req: IncomingMessage,
  res: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  try {
    // fetch has no such request: the standard forbids the method.
    if (req.method === 'TRACE') {
      res.writeHead(405).end();
      return;
    }
    const response = await handler(requestOf(req, res, signal));
    const body = new Uint8Array(await response.arrayBuffer());
    if (res.destroyed) return;
    res.statusCode = response.status;
    res.setHeaders(response.headers);
    res.end(body);
  } catch {
    if (!res.headersSent) res.writeHead(500);
    res.end();
  }
}

function requestOf(req: IncomingMessage, res: ServerResponse, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', rawHeaders } = req;
  const headers = new Headers();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) headers.append(rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '');
  const origin = `http://${req.headers.host ?? 'localhost'}`;
  const address = URL.canParse(url, origin) ? new URL(url, origin) : new URL('http://localhost/');
  const body = method === 'GET' || method === 'HEAD' ? null : bodyOf(req, res);
  return new Request(address, { method, headers, body, signal, duplex: 'half' });
}

/**
 * The body as a stream that takes from the socket only what is asked for. Giving it up leaves the connection alone;
 * once the call is answered, what is left of it is out of reach.
 */
function bodyOf(req: IncomingMessage, res: ServerResponse): ReadableStream<Uint8Array> {
  let isOpen = true;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const settle = (how: () => void) => {
          if (isOpen) how();
          isOpen = false;
        };
        req.on('data', (chunk: Uint8Array) => {
          if (!isOpen) return;
          req.pause();
          controller.enqueue(chunk);
        });
        req.on('end', () => settle(() => controller.close()));
        req.on('error', (error) => settle(() => controller.error(error)));
        req.on('close', () => settle(() => controller.error(new Error('the connection was closed'))));
        res.on('finish', () => settle(() => controller.error(new Error('the request has been answered'))));
        req.pause();
      },
      pull() {
        req.resume();
      },
      cancel() {
        isOpen = false;
        req.pause();
      },
    },
    { highWaterMark: 0 },
  );
}

/**
 * Lets a client that is still sending read its answer, and keeps the connection for its next request. Closing it with
 * unread bytes in it would reset it, and the answer with it.
 */
function discardRest(req: IncomingMessage): void {
  if (req.complete && req.readableEnded) return;
  const timer = setTimeout(() => req.destroy(), DISCARD_MS);
  req.on('close', () => clearTimeout(timer));
  req.on('error', () => undefined);
  req.resume();
}
