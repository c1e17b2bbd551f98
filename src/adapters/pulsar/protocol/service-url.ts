/** Addresses of brokers: `pulsar://host[:port]`, or `pulsar+ssl://host[:port]` for TLS. */
import { IsthmusError, show } from '../../../errors.js';

export interface ServiceUrl {
  readonly tls: boolean;
  /** A name or an address, IPv6 without brackets. */
  readonly host: string;
  /** 1..65535. */
  readonly port: number;
  /** `host:port` as it stands in a URL. */
  readonly authority: string;
  /** The URL in one spelling, so that two of one broker compare as equal. */
  readonly text: string;
}

/** Where to connect to. */
export interface Target {
  readonly url: ServiceUrl;
  /** The broker's `host:port`, where `url` is that of a proxy in front of it. */
  readonly behind?: string;
}

const SCHEMES = new Map([
  ['pulsar:', { tls: false, port: 6650 }],
  ['pulsar+ssl:', { tls: true, port: 6651 }],
]);

/** Reads a URL as somebody else wrote it; undefined when it is none of a broker. */
export function parseServiceUrl(text: string): ServiceUrl | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const scheme = url && SCHEMES.get(url.protocol);
  if (url === undefined || scheme === undefined || url.hostname === '' || !isBare(url)) return undefined;
  const port = url.port === '' ? scheme.port : Number(url.port);
  if (port === 0) return undefined;
  const authority = `${url.hostname}:${port}`;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return { tls: scheme.tls, host, port, authority, text: `${url.protocol}//${authority}` };
}

function isBare({ username, password, pathname, search, hash }: URL): boolean {
  return [username, password, search, hash].every((part) => part === '') && ['', '/'].includes(pathname);
}

/** The configured URLs. Throws `invalidArgument` unless there is at least one and all are of one scheme. */
export function checkServiceUrls(texts: readonly string[]): readonly ServiceUrl[] {
  const urls = texts.map((text) => {
    const url = parseServiceUrl(text);
    if (url !== undefined) return url;
    throw new IsthmusError(
      'invalidArgument',
      `service URL ${show(text)}: pulsar://host:port or pulsar+ssl://host:port, and nothing behind it`,
    );
  });
  const schemes = new Set(urls.map(({ tls }) => tls));
  if (schemes.size === 1) return urls;
  throw new IsthmusError('invalidArgument', `service URLs ${show(texts)}: one or more, all of one scheme`);
}
