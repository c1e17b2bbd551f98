/** What a target tells of its topics: the describe document and the listing of children. */
import type { TargetChild, TargetSettings, TargetTopic } from './topics.js';

/** GET /v1/topics/{t}. Times are in the units of the API: `created_at` is in unix seconds. */
export function describeTopic(name: string, topic: TargetTopic, settings: TargetSettings): object {
  const isChild = topic.parent !== '';
  return {
    name,
    id: topic.id,
    partitions: topic.partitions,
    retention_ms: topic.retentionMs,
    created_at: topic.createdAt,
    owner: 'admin',
    role: isChild ? 'child' : topic.children.length > 0 ? 'parent' : 'plain',
    ...(isChild ? { parent: topic.parent } : {}),
    children: topic.children.map((child) => child.name),
    ...(topic.fanoutDelayMs > 0 ? { fanout_delay_ms: topic.fanoutDelayMs } : {}),
    ...(settings.showsRemotes && topic.remote !== undefined ? { remote: topic.remote } : {}),
    ...(topic.schema === undefined ? {} : { schema: topic.schema, schema_version: 1 }),
    partial: false,
  };
}

/** GET /v1/topics/{t}/children. Who made and who paused a link is for administrators. */
export function listChildren(name: string, topic: TargetTopic, settings: TargetSettings, isAdmin: boolean): object {
  return {
    parent: name,
    ...(settings.servesIds ? { parent_id: topic.id } : {}),
    children: topic.children.map((child) => ({
      name: child.name,
      delay_ms: child.delayMs ?? 0,
      lag_messages: 0,
      lag_complete: true,
      ...(settings.showsRemotes && child.remote !== undefined ? remoteChild(child.remote, isAdmin) : {}),
    })),
  };
}

function remoteChild(remote: NonNullable<TargetChild['remote']>, isAdmin: boolean): object {
  return {
    remote: {
      name: remote.name,
      topic: remote.topic,
      target_id: remote.targetId ?? '',
      from: 'latest',
      lanes: 1,
      paused: false,
      pause_reason: '',
      paused_at_ms: 0,
      skip: [],
      ...(isAdmin ? { paused_by: '', created_by: 'admin' } : {}),
    },
    paused: false,
    state: 'running',
    lag_seconds: 0,
    source_drained: true,
    blocked_at: null,
    target_verified_at: null,
  };
}
