/** Bodies of messages: read up to a limit while they stream in, and parsed as JSON of bounded depth. */
import { IsthmusError } from '../../errors.js';

/** What the exchange says is nested seven deep; the rest is room for members of later versions. */
const MAX_DEPTH = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * The bytes of a body, or undefined once it is known to be longer than `maxBytes`: by the length its header declares,
 * else as soon as more has come in. The rest is then not read. Rejects when the stream breaks.
 */
export async function readLimited(
  { body, headers }: Pick<Request | Response, 'body' | 'headers'>,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let length = Number(headers.get('content-length') ?? 0);
  if (length <= maxBytes) {
    length = 0;
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      chunks.push(read.value);
      length += read.value.byteLength;
      if (length > maxBytes) break;
    }
  }
  if (length <= maxBytes) return Buffer.concat(chunks, length);
  await reader.cancel().catch(() => undefined);
  return undefined;
}

/** Parses a body. Throws `invalidState` when it is not UTF-8, not JSON, or nested too deeply to be handled safely. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new IsthmusError('invalidState', 'body is not UTF-8', { cause });
  }
  if (isDeeperThan(text, MAX_DEPTH)) {
    throw new IsthmusError('invalidState', `body is nested more than ${MAX_DEPTH} deep`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new IsthmusError('invalidState', 'body is not JSON', { cause });
  }
}

/** Counts brackets outside texts, without recursion: what recurses over the value later is then safe. */
function isDeeperThan(json: string, maxDepth: number): boolean {
  let depth = 0;
  let inText = false;
  for (let i = 0; i < json.length; i++) {
    const unit = json.charCodeAt(i);
    if (inText) {
      if (unit === BACKSLASH) i++;
      else if (unit === QUOTE) inText = false;
    } else if (unit === QUOTE) inText = true;
    else if (unit === 0x5b || unit === 0x7b) {
      if (++depth > maxDepth) return true;
    } else if (unit === 0x5d || unit === 0x7d) depth--;
  }
  return false;
}
