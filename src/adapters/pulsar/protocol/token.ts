/**
 * The token of a connection: shown in CONNECT, and again whenever the broker asks, read anew each time. It never stands
 * in a reason.
 */
import { messageOf } from '../../../errors.js';
import type { Link } from './link.js';
import type { Settings } from './settings.js';

export const CLIENT_VERSION = 'isthmus';
export const PROTOCOL_VERSION = 21;
export const AUTH_METHOD = 'token';

/** Answers an AUTH_CHALLENGE. */
export async function answerChallenge(link: Link, settings: Settings): Promise<void> {
  const token = await readToken(link, settings);
  if (token === undefined) return link.end('authentication', 'the broker asks for a token, and none is configured');
  link.send({
    authResponse: {
      clientVersion: CLIENT_VERSION,
      protocolVersion: PROTOCOL_VERSION,
      response: { authMethodName: AUTH_METHOD, authData: token },
    },
  });
}

/** The bytes of the token; undefined without one, and when it cannot be read, which ends the link. */
export async function readToken(link: Link, { token }: Settings): Promise<Uint8Array | undefined> {
  try {
    return token && Buffer.from(await token());
  } catch (error) {
    link.end('authentication', `the token could not be read: ${messageOf(error)}`);
    return undefined;
  }
}
