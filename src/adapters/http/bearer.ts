/**
 * Bearer credentials (RFC 6750) on both sides of a call: which tokens are possible, whose token a call carries, and
 * how a token stays out of what is reported. No message here ever shows one.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { IsthmusError } from '../../errors.js';

const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
const AUTHORIZATION = /^bearer +([^ ]+)$/i;

/** Refuses, as `invalidArgument`, a token that no Authorization header can carry, an empty one among them. */
export function checkToken(token: unknown, where: string): string {
  if (typeof token === 'string' && TOKEN.test(token)) return token;
  throw new IsthmusError(
    'invalidArgument',
    `${where}: a bearer token is one or more of letters, digits and -._~+/, then any number of =`,
  );
}

/**
 * Tells from an Authorization header which cluster calls; undefined when it carries no accepted token. Digests of
 * equal length are compared in constant time, and always all of them, so that the time an answer takes tells nothing
 * about any token. Throws `invalidArgument` for a token that is impossible or belongs to two clusters.
 */
export function bearerIdentity(
  credentials: Readonly<Record<string, string | readonly string[]>>,
): (authorization: string | null) => string | undefined {
  const known = Object.entries(credentials).flatMap(([cluster, tokens]) =>
    [tokens].flat().map((token) => ({ cluster, digest: sha256(checkToken(token, `credentials of ${cluster}`)) })),
  );
  const owners = new Map<string, string>();
  for (const { cluster, digest } of known) {
    const owner = owners.get(digest.toString('hex')) ?? cluster;
    if (owner !== cluster) {
      throw new IsthmusError(
        'invalidArgument',
        `credentials of ${owner} and ${cluster} share a token: whose call is it?`,
      );
    }
    owners.set(digest.toString('hex'), cluster);
  }
  return (authorization) => {
    const presented = sha256(AUTHORIZATION.exec(authorization ?? '')?.[1] ?? '');
    let caller: string | undefined;
    for (const { cluster, digest } of known) if (timingSafeEqual(presented, digest)) caller = cluster;
    return caller;
  };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Takes a token out of a text, for example where a peer echoes the call's headers in its answer. */
export function redact(text: string, token: string): string {
  return text.replaceAll(token, '[token]');
}
