/**
 * Brokers of 5.0.1 can leave an active segment without the topic behind it. Of two changes of one layout at the same
 * time, both make the topics of their new segments under the same ids; the one that comes second commits its segments
 * under the ids that follow, and makes no topics for those. Nobody can write there or read, the layout cannot be changed
 * there any more, and no broker mends it. Putting a subscription on the topic makes what is missing of it, topics
 * included: so those are put again that are not on every active segment.
 */
import { isLegacy } from '../../../layout/index.js';
import type { AdminReply, PulsarAdmin } from './admin.js';

/** Gives the names of what was put again; what must not be from here is left as it is. `topic` is `tenant/namespace/name`, with or without `topic://`. */
export async function restoreSegments(admin: PulsarAdmin, topic: string): AdminReply<readonly string[]> {
  const [layout, subscriptions] = await Promise.all([admin.scalableLayout(topic), admin.subscriptions(topic)]);
  if (layout.type !== 'ok') return layout;
  if (subscriptions.type !== 'ok') return subscriptions;
  const active = layout.value.active.filter((segment) => !isLegacy(segment));
  const restored: string[] = [];
  for (const [name, { type, backlogs }] of subscriptions.value) {
    if (active.every(({ segmentId }) => backlogs.has(segmentId))) continue;
    const put = await admin.putSubscription(topic, name, type);
    if (put.type === 'ok') restored.push(name);
  }
  return { type: 'ok', value: restored };
}
