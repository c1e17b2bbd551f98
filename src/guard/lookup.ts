/**
 * The guard inside a connection: a `lookup` for sockets and agents of Node. The socket connects to what the lookup
 * answers, so no second resolution lies between the check and the connection (DNS rebinding). Node asks no lookup for
 * a host that is an address; `guardTarget` has judged that one already.
 */
import type { LookupFunction } from 'node:net';
import { canonicalHost } from './canonical.js';
import type { PinnedAddress } from './classify.js';
import type { DialRefusal, Guard, RefusalReason } from './guard.js';

/** Resolves a name to all its addresses, in the order in which to try them. A rejection ends the dial as it is. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

/** What a guarded dial fails with. It names no host and no address. */
export class DialRefused extends Error {
  override readonly name = 'DialRefused';

  constructor(readonly reason: RefusalReason) {
    super(`the address guard refused the connection: ${reason}`);
  }
}

export interface GuardedTarget {
  readonly type: 'target';
  /** Host and port for the socket, and the host for the server's name and certificate. */
  readonly host: string;
  readonly port: number;
  readonly lookup: LookupFunction;
}

/**
 * Judges a target, and gives what to connect with when it is not refused. Take `lookup` into the options of every
 * socket, or of an agent that serves this target alone: for another host it fails with the reason `redirect`.
 */
export function guardTarget(
  guard: Guard,
  target: { readonly host: string; readonly port: number },
  resolve: ResolveHost,
): GuardedTarget | DialRefusal {
  const verdict = guard.judgeTarget(target);
  if (verdict.type === 'refused') return verdict;
  const host = verdict.type === 'resolve' ? verdict.host : verdict.addresses[0].address;
  return { type: 'target', host, port: target.port, lookup: lookupFor(guard, host, resolve) };
}

function lookupFor(guard: Guard, host: string, resolve: ResolveHost): LookupFunction {
  return (asked, { all, family }, callback) => {
    permitted(guard, host, asked, resolve).then(
      (addresses) => {
        const wanted = addresses.filter((pinned) => !family || `IPv${pinned.family}`.endsWith(`${family}`));
        const [first] = wanted;
        if (first === undefined) callback(new DialRefused('address'), '', 0);
        else if (all) callback(null, wanted);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), '', 0),
    );
  };
}

async function permitted(
  guard: Guard,
  host: string,
  asked: string,
  resolve: ResolveHost,
): Promise<readonly PinnedAddress[]> {
  if (canonicalHost(asked) !== host) throw new DialRefused('redirect');
  const verdict = guard.judgeResolved(await resolve(host));
  if (verdict.type === 'refused') throw new DialRefused(verdict.reason);
  return verdict.addresses;
}
