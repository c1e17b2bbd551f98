/** Remotes in memory that are broken in one way, for the suite of `RemoteTopic` to refuse. */
import type { SourcePosition } from 'isthmus';
import type { MemoryRemoteOptions, MemoryTopic } from 'isthmus/adapters/memory';
import { type RemoteTopicSetup, testRemoteTopic } from 'isthmus/testing';
import type { RemoteProducer, RemoteTopic, Send, SendResult } from '../../src/ports/index.js';
import { newTopic, remoteSetup } from './memory-suites.js';
import { verdictOf } from './verdict.js';

/** What a defect can reach beside the remote that it breaks. */
export interface Surroundings {
  readonly topic: MemoryTopic;
  readonly setup: RemoteTopicSetup;
  /** Where a pin of the defect's own can stand: the same for all processes. */
  readonly pinned: Map<number, SourcePosition>;
}

/** Breaks a remote; called once for each process. */
export type Defect = (remote: RemoteTopic, surroundings: Surroundings) => Partial<RemoteTopic>;

/** What the suite says of a remote with a defect, or of a setup that is broken as a whole. */
export function verdictOn(
  options: MemoryRemoteOptions,
  defect: Defect,
  breakSetup: (setup: RemoteTopicSetup, topic: MemoryTopic) => Partial<RemoteTopicSetup> = () => ({}),
): Promise<string> {
  return verdictOf((test) => {
    testRemoteTopic(() => {
      const topic = newTopic();
      const setup = remoteSetup(options, topic);
      const pinned = new Map<number, SourcePosition>();
      const open = () => {
        const remote = topic.remote('s', options);
        return { ...remote, ...defect(remote, { topic, setup, pinned }) };
      };
      return { ...setup, remote: open(), another: open, ...breakSetup(setup, topic) };
    }, test);
  });
}

/** A defect in how producers send; `tell` is the suite's own `onResult`. */
export const inSending =
  (
    send: (
      producer: RemoteProducer,
      sent: Send,
      around: { readonly tell: (result: SendResult) => void; readonly segmentId: number } & Surroundings,
    ) => void,
  ): Defect =>
  ({ open }, surroundings) => ({
    open: async (sourceSegmentId, segmentId, tell) => {
      const opened = await open(sourceSegmentId, segmentId, tell);
      if (opened.type !== 'opened') return opened;
      const { producer } = opened;
      const around = { tell, segmentId, ...surroundings };
      return { ...opened, producer: { ...methodsOf(producer), send: (sent) => send(producer, sent, around) } };
    },
  });

/** A defect in a method of producers other than `send`. */
export const inProducers =
  (change: (producer: RemoteProducer, surroundings: Surroundings) => Partial<RemoteProducer>): Defect =>
  ({ open }, surroundings) => ({
    open: async (sourceSegmentId, segmentId, tell) => {
      const opened = await open(sourceSegmentId, segmentId, tell);
      if (opened.type !== 'opened') return opened;
      const producer = { ...methodsOf(opened.producer), ...change(opened.producer, surroundings) };
      return { ...opened, producer };
    },
  });

/** A defect in what results say; undefined tells nothing. */
export const inResults =
  (change: (result: SendResult, count: number) => SendResult | undefined): Defect =>
  ({ open }) => ({
    open: (sourceSegmentId, segmentId, tell) => {
      let count = 0;
      return open(sourceSegmentId, segmentId, (result) => {
        const changed = change(result, count++);
        if (changed !== undefined) tell(changed);
      });
    },
  });

function methodsOf(producer: RemoteProducer): RemoteProducer {
  return {
    send: (sent) => producer.send(sent),
    barrier: () => producer.barrier(),
    close: () => producer.close(),
  };
}
