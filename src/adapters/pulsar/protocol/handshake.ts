/** How a connection comes to be accepted by a broker. */
import { refused } from './commands.js';
import { Connection } from './connection.js';
import { Link } from './link.js';
import type { Target } from './service-url.js';
import type { Settings } from './settings.js';
import { after } from './time.js';
import { AUTH_METHOD, answerChallenge, CLIENT_VERSION, PROTOCOL_VERSION, readToken } from './token.js';
import type { Refusal } from './types.js';

/** Connects, and waits until the broker has accepted or the time is up. */
export function openConnection(target: Target, settings: Settings): Promise<Connection | Refusal> {
  const limitMs = settings.connectTimeoutMs;
  return new Promise((resolve) => {
    let refusal: Refusal | undefined;
    const link = new Link(target.url, settings, {
      onUp: () => void introduce(link, target, settings),
      onCommand: ({ connected, authChallenge, error }) => {
        if (connected !== undefined) {
          cancel();
          resolve(new Connection(link, target, settings, connected));
        } else if (authChallenge !== undefined) {
          void answerChallenge(link, settings);
        } else if (error !== undefined) {
          refusal = refused(error.error, error.message);
          link.end('authentication', error.message);
        }
      },
      onEnd: ({ reason }) => {
        cancel();
        resolve(refusal ?? { type: 'unreachable', reason: `${target.url.text}: ${reason}` });
      },
    });
    const cancel = after(settings.clock, limitMs, () => link.end('lost', `not accepted within ${limitMs} ms`));
  });
}

async function introduce(link: Link, { behind }: Target, settings: Settings): Promise<void> {
  const token = await readToken(link, settings);
  link.send({
    connect: {
      clientVersion: CLIENT_VERSION,
      protocolVersion: PROTOCOL_VERSION,
      // Only this one: others change the bytes that come in, or what a receipt means.
      featureFlags: { supportsAuthRefresh: true },
      ...(token === undefined ? {} : { authMethodName: AUTH_METHOD, authData: token }),
      ...(behind === undefined ? {} : { proxyToBrokerUrl: behind }),
    },
  });
}
