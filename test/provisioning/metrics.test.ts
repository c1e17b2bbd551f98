/** What a provisioner has counted, as the metrics have it: an alert can be set on a reason. */
import { observeReplication } from 'isthmus/drivers';
import { expect, it } from 'vitest';
import { policy } from './shapes.js';
import { by, Turns, topic } from './turns.js';

const { signal } = new AbortController();

it('decisions by reason, creating calls by kind, starts and stops are metrics of each topic and remote', async () => {
  const turns = new Turns();
  await by(turns.admins, 'a').createPartitioned(topic, 2, signal);
  const provisioner = turns.provision('a', 'b', policy());
  // Without a call that waits for its turn time would pass.
  await new Promise(setImmediate);
  while (turns.replicators.length === 0) await turns.step(0);
  await by(turns.admins, 'b').expandPartitions(topic, 3, signal);
  while (turns.running('b') > 0) await turns.step(0);
  const { counters } = provisioner.status().provisioning;
  const seen: [string, number, object][] = [];
  let collect: () => void = () => undefined;
  const remove = observeReplication<{ readonly name: string }>(
    {
      createObservableCounter: (name) => ({ name }),
      createObservableGauge: (name) => ({ name }),
      addBatchObservableCallback: (callback) => {
        collect = () => callback({ observe: ({ name }, value, attributes) => seen.push([name, value, attributes]) });
      },
      removeBatchObservableCallback: () => undefined,
    },
    { replicators: () => [], provisioning: () => [{ topic: 'orders', remote: 'b', counters }] },
  );
  collect();
  const at = { topic: 'orders', remote: 'b' };
  expect(seen).toEqual([
    ['isthmus.provisioning.decisions', 1, { ...at, reason: 'topicMissing' }],
    ['isthmus.provisioning.decisions', 1, { ...at, reason: 'sameShape' }],
    ['isthmus.provisioning.decisions', 1, { ...at, reason: 'partitionMismatch' }],
    ['isthmus.provisioning.creations', 1, { ...at, creation: 'createPartitioned' }],
    ['isthmus.provisioning.starts', 1, at],
    ['isthmus.provisioning.stops', 1, at],
  ]);
  remove();
  await turns.stop();
});
