/** Moves the pins of a simulated process as the driver's keeper of pins does (R15). */
import { comparePositions } from '../dedup/index.js';
import { pinPlaces } from '../replication/index.js';
import type { RunningProcess } from './replication-run.js';

/** Tells the machines where remote segments end, and moves the pin in each to where it may stand. */
export function movePins(process: RunningProcess): void {
  const { sourceLayout, remoteLayout, host, seenAt } = process;
  if (sourceLayout === undefined || remoteLayout === undefined) return;
  for (const [segmentId, at] of [...seenAt]) {
    for (const run of [...process.runs.values()]) process.dispatch(run, { type: 'end', segmentId, at });
  }
  process.later(() => {
    const { records } = host.source.toward(host.remote.cluster);
    const pins = host.remote.pin(host.source.cluster);
    for (const [segmentId, place] of pinPlaces(sourceLayout, remoteLayout, records)) {
      const before = pins.get(segmentId);
      if (before !== undefined && comparePositions(place, before) <= 0) continue;
      pins.set(segmentId, place);
      host.count('pinMoved');
    }
  });
}
