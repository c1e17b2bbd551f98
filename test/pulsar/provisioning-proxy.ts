/**
 * A proxy before the admin REST of a real cluster that notes down every request, so that a test can show what was asked
 * of the cluster, and that nothing was asked which could create. It can also answer in the cluster's place.
 */
import { once } from 'node:events';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';

/**
 * The look-ups of provisioning, and what the check of the program reads of a topic besides: none of them creates
 * anything, and each is a GET without a word more than this.
 */
const LOOK_UPS = [
  /^GET namespaces\/[^/?]+\/[^/?]+$/,
  /^GET namespaces\/[^/?]+\/[^/?]+\/topics\?mode=ALL$/,
  /^GET persistent\/[^/?]+\/[^/?]+\/[^/?]+\/partitions$/,
  /^GET scalable\/[^/?]+\/[^/?]+(\/[^/?]+)?$/,
  /^GET scalable\/[^/?]+\/[^/?]+\/[^/?]+\/segments\/\d+\/stats$/,
  /^GET scalable\/[^/?]+\/[^/?]+\/[^/?]+\/autoScalePolicy$/,
];

export class RecordingProxy {
  /** `GET persistent/...`, in the order of arrival. */
  readonly requests: string[] = [];
  /** Given to every request instead of the cluster's own answer. */
  answer: { readonly status: number; readonly body: string } | undefined;

  private constructor(
    private readonly server: Server,
    private readonly target: string,
  ) {}

  static async start(adminUrl: string): Promise<RecordingProxy> {
    const server = createServer();
    const proxy = new RecordingProxy(server, adminUrl);
    server.on('request', (request, response) => proxy.pass(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get url(): string {
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy does not listen');
    return `http://127.0.0.1:${address.port}`;
  }

  /** What was asked about a topic, or about all of a namespace, and is no look-up. */
  changes(path: string): readonly string[] {
    return this.requests.filter((line) => line.includes(path) && !LOOK_UPS.some((form) => form.test(line)));
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private pass(request: IncomingMessage, response: ServerResponse): void {
    const { method = '', url = '', headers } = request;
    this.requests.push(`${method} ${url.replace('/admin/v2/', '')}`);
    if (this.answer !== undefined) {
      request.resume();
      response.writeHead(this.answer.status).end(this.answer.body);
      return;
    }
    const onward = httpRequest(new URL(url, this.target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  }
}
