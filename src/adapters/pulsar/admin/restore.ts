/**
 * Brokers of 5.0.1 can leave an active segment without the topic behind it. Of two changes of one layout at the same
 * time, both make the topics of their new segments under the same ids; the one that comes second commits its segments
 * under the ids that follow, and makes no topics for those. Nobody can write there or read, the layout cannot be changed
 * there any more, and no broker mends it. Putting a subscription on the topic makes what is missing of it, topics
 * included: so those are put again that are on every active segment which has a topic, and not on all.
 */
import { isLegacy } from '../../../layout/index.js';
import type { AdminReply, PulsarAdmin } from './admin.js';

/** A reader of this library ends in an id of its own. It may be on all segments that are left, and has no place on others. */
const IS_READER = /\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Gives the names of what was put again; what must not be from here is left as it is. `topic` is `tenant/namespace/name`, with or without `topic://`. */
export async function restoreSegments(admin: PulsarAdmin, topic: string): AdminReply<readonly string[]> {
  const [layout, subscriptions] = await Promise.all([admin.scalableLayout(topic), admin.subscriptions(topic)]);
  if (layout.type !== 'ok') return layout;
  if (subscriptions.type !== 'ok') return subscriptions;
  const active = layout.value.active.filter((segment) => !isLegacy(segment));
  const restored: string[] = [];
  for (const [name, { type, backlogs, uncovered }] of subscriptions.value) {
    const missing = active.filter(({ segmentId }) => !backlogs.has(segmentId));
    if (missing.length === 0 || uncovered.length > 0 || IS_READER.test(name)) continue;
    const put = await admin.putSubscription(topic, name, type);
    if (put.type === 'ok') restored.push(name);
  }
  return { type: 'ok', value: restored };
}
