/** What the stories of a cursor share: one link with one cursor, the requests that were made, and answers in order. */
import type { LinkRecord, SenderRequest } from '../../src/sender/index.js';
import { manyRecords, type Passage, World } from './world.js';

export const isChunk = ({ pool }: SenderRequest) => pool === 'chunk';
export const chunks = (world: World) => world.sent.filter(({ request }) => isChunk(request));
export const side = (world: World) => world.sent.filter(({ request }) => !isChunk(request) && request.method === 'GET');
export const bodyOf = (request: SenderRequest | undefined) => Buffer.from(request?.body ?? []).toString('latin1');
export const payloads = (world: World, remote = 'b') => world.target(remote).stored.map(({ payload }) => payload);
export const counters = (world: World) => world.sender.report();

/** The sizes of the requests with records, in order. */
export const sizes = (world: World) =>
  chunks(world).map(({ request }) => (JSON.parse(bodyOf(request)) as { messages: unknown[] }).messages.length);

/** One link with one cursor over these records. */
export function started(
  records = manyRecords(10),
  { link = {}, ...options }: { link?: Partial<LinkRecord>; maxHeldBytes?: number } = {},
  passage?: World['passage'],
): World {
  const world = new World(options);
  if (passage !== undefined) world.passage = passage;
  world.remote('b');
  world.link('child', link);
  world.attach('c', 'child', 0, records);
  return world;
}

/** The answers to the requests with records, one after the other; then the target's own. */
export function answering(...outcomes: readonly (Passage['outcome'] | undefined)[]): World['passage'] {
  const left = [...outcomes];
  return (request) => {
    const outcome = isChunk(request) ? left.shift() : undefined;
    return outcome === undefined ? {} : { landsMs: undefined, outcome };
  };
}

export const stallLogs = (world: World) =>
  world.logs.map((log) => ('state' in log ? `${log.type} ${log.state}` : log.type));
