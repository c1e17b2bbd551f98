/** Makes the pin on a topic (R15) through the cluster's admin REST. */
import { type PulsarAdmin, restoreSegments } from './admin/index.js';
import type { PinEnsured } from './remote/index.js';

/** `topic` is `topic://tenant/namespace/name`. The subscription may be there already. */
export function adminPin(admin: PulsarAdmin, topic: string): (subscription: string) => Promise<PinEnsured> {
  return async (subscription) => {
    const restored = await restoreSegments(admin, topic);
    const result = restored.type === 'ok' ? await admin.putSubscription(topic, subscription) : restored;
    if (result.type === 'ok') return { type: 'ensured' };
    if (result.type === 'unauthorized') return { type: 'unauthorized', reason: result.reason };
    return { type: 'unavailable', reason: `${result.type}: ${result.reason}` };
  };
}
