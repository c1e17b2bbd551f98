/** One offer to a window of 10,000 producers, against one get and one set of a Map of as many. */
import { DedupWindow } from 'isthmus';
import { atMost, measure, type Row } from './harness.js';

const PRODUCERS = 10_000;

export async function dedupRows(): Promise<Row[]> {
  const names = Array.from({ length: PRODUCERS }, (_, i) => `pulsar.repl.cluster-${i % 7}.${i}`);
  const window = new DedupWindow();
  const map = new Map<string, object>();
  let entryId = 0n;
  const [offer, plain] = await measure([
    {
      name: 'offer',
      run(n) {
        for (let i = 0; i < n; i++) {
          const name = names[i % PRODUCERS] as string;
          if (i % PRODUCERS === 0) entryId++;
          if (window.offer(name, { position: { ledgerId: 7n, entryId } }) !== 'accept') throw new Error('not accepted');
        }
        entryId++;
        return undefined;
      },
    },
    {
      name: 'map',
      run(n) {
        for (let i = 0; i < n; i++) {
          const name = names[i % PRODUCERS] as string;
          if (i % PRODUCERS === 0) entryId++;
          map.get(name);
          map.set(name, { position: { ledgerId: 7n, entryId } });
        }
        return undefined;
      },
    },
  ]);
  if (offer === undefined || plain === undefined) throw new Error('nothing was measured');
  return [atMost('dedup offer, 10,000 producers', 'Map get and set', offer.medianNs, plain.medianNs, 3)];
}
