/**
 * Where a peer's redirect may lead. A redirect to the leader takes method, body and credential along, so it is followed
 * by hand: only 307 and 308, which keep the method, only to hosts that are configured for that peer, and never from
 * https to http. The port is part of a host.
 */

/** Where a peer may be reached. */
export interface PeerAddress {
  readonly url: URL;
  /** Hosts beside that of the URL, as `name` or `name:port`. */
  readonly allowedHosts: readonly string[];
}

/** The next address, or why there is none. `location` is relative to `from`. */
export function redirectTarget(
  { url: home, allowedHosts }: PeerAddress,
  from: URL,
  { status, location }: { readonly status: number; readonly location: string | null },
): URL | string {
  if (status !== 307 && status !== 308) return `redirect ${status} is not followed: only 307 and 308 keep the method`;
  if (location === null) return `redirect ${status} without a location`;
  if (!URL.canParse(location, from.href)) return `redirect ${status} to what is no URL`;
  const target = new URL(location, from);
  if (target.protocol !== 'https:' && target.protocol !== from.protocol) {
    return `redirect ${status} from ${from.protocol} to ${target.protocol} is not followed`;
  }
  if (target.username !== '' || target.password !== '') return `redirect ${status} to a URL with a credential in it`;
  const isAllowed = target.host === home.host || allowedHosts.some((host) => hostOf(host, target) === target.host);
  return isAllowed ? target : `redirect ${status} to ${target.host} is not followed: it is not a host of this peer`;
}

/** A configured host as the URL of the same scheme spells it: lower case, the scheme's own port left out. */
function hostOf(host: string, { protocol }: URL): string {
  return new URL(`${protocol}//${host}`).host;
}

/** True for `name` or `name:port` and nothing more. */
export function isHost(text: string): boolean {
  if (/[/?#@\\]/.test(text) || !URL.canParse(`http://${text}`)) return false;
  return new URL(`http://${text}`).host !== '';
}
