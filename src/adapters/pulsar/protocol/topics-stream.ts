/** Namespace watches: the scalable topics of one namespace now and after every change. */
import { isFieldSet } from '@bufbuild/protobuf';
import { refused } from './commands.js';
import { WatchTopicsUpdateSchema } from './commands_pb.js';
import type { StreamKind } from './stream.js';
import type { TopicsUpdate } from './types.js';

export function topicsStream(namespace: string): StreamKind<TopicsUpdate> {
  return {
    opening: (watchId) => ({ watchTopics: { watchId, namespace } }),
    closing: (watchId) => ({ watchTopicsClose: { watchId } }),
    read({ watchTopicsUpdate: update }) {
      if (update === undefined) return { type: 'malformed', reason: 'a watch got another command' };
      const { snapshot, diff, error, message } = update;
      if (isFieldSet(update, WatchTopicsUpdateSchema.field.error)) return refused(error, message);
      if (snapshot !== undefined) return { type: 'update', update: { type: 'snapshot', topics: snapshot.topics } };
      if (diff === undefined) return { type: 'malformed', reason: 'an update of a watch that says nothing' };
      return { type: 'update', update: { type: 'diff', added: diff.added, removed: diff.removed } };
    },
  };
}
