/** Layout sessions: the layout of one scalable topic now and after every change. */
import { isFieldSet } from '@bufbuild/protobuf';
import type { Segment } from '../../../layout/index.js';
import { refused } from './commands.js';
import { type Layout, type LayoutSegment, LayoutSegmentSchema, LayoutUpdateSchema } from './commands_pb.js';
import type { StreamKind } from './stream.js';
import type { LayoutUpdate } from './types.js';

const SEALED = 1;

export function layoutStream(topic: string, isTls: boolean): StreamKind<LayoutUpdate> {
  return {
    // A topic that is missing stays missing: it is the host's to create, with a shape of its choice.
    opening: (sessionId) => ({ layoutLookup: { sessionId, topic, createIfMissing: false } }),
    closing: (sessionId) => ({ layoutClose: { sessionId } }),
    read({ layoutUpdate }) {
      if (layoutUpdate === undefined) return { type: 'malformed', reason: 'a layout session got another command' };
      const { dag, error, message, resolvedTopicName } = layoutUpdate;
      if (isFieldSet(layoutUpdate, LayoutUpdateSchema.field.error)) return refused(error, message);
      if (dag === undefined) return { type: 'malformed', reason: 'a layout update without a layout' };
      const update = readLayout(dag, resolvedTopicName || topic, isTls);
      const numbers = update.segments.flatMap(numbersOf).concat(update.epoch, [...update.brokers.keys()]);
      if (numbers.every(Number.isSafeInteger)) return { type: 'update', update };
      return { type: 'malformed', reason: 'a layout with an id, epoch or time beyond 2^53' };
    },
  };
}

function readLayout(dag: Layout, topic: string, isTls: boolean): LayoutUpdate {
  const controllerUrl = isTls ? dag.controllerBrokerUrlTls : dag.controllerBrokerUrl;
  return {
    epoch: Number(dag.epoch),
    segments: dag.segments.map(readSegment),
    brokers: new Map(
      dag.segmentBrokers
        .map(({ segmentId, brokerUrl, brokerUrlTls }) => [Number(segmentId), isTls ? brokerUrlTls : brokerUrl] as const)
        .filter(([, url]) => url !== ''),
    ),
    controllerUrl: controllerUrl || undefined,
    topic,
  };
}

function readSegment(segment: LayoutSegment): Segment {
  const { sealedAtEpoch, sealedAtMs } = LayoutSegmentSchema.field;
  return {
    segmentId: Number(segment.segmentId),
    range: { start: segment.hashStart, end: segment.hashEnd },
    state: segment.state === SEALED ? 'sealed' : 'active',
    parentIds: segment.parentIds.map(Number),
    childIds: segment.childIds.map(Number),
    entryBucketSplits: segment.entryBucketSplits,
    createdAtEpoch: Number(segment.createdAtEpoch),
    // What is absent here is -1 in Pulsar's stored record.
    sealedAtEpoch: isFieldSet(segment, sealedAtEpoch) ? Number(segment.sealedAtEpoch) : -1,
    createdAtMs: Number(segment.createdAtMs),
    sealedAtMs: isFieldSet(segment, sealedAtMs) ? Number(segment.sealedAtMs) : -1,
    ...(segment.legacyTopicName === '' ? {} : { legacyTopicName: segment.legacyTopicName }),
  };
}

function numbersOf(segment: Segment): readonly number[] {
  const { segmentId, parentIds, childIds, createdAtEpoch, sealedAtEpoch, createdAtMs, sealedAtMs } = segment;
  return [segmentId, ...parentIds, ...childIds, createdAtEpoch, sealedAtEpoch, createdAtMs, sealedAtMs];
}
