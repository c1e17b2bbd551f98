/** Schemas of a topic: one by its version, and the version of one. */
import { isFieldSet } from '@bufbuild/protobuf';
import { refused } from './commands.js';
import { GetOrCreateSchemaResponseSchema, GetSchemaResponseSchema } from './commands_pb.js';
import type { Connection } from './connection.js';
import { type GetSchemaResult, type RegisterSchemaResult, SERVER_ERROR, type TopicSchema } from './types.js';

export async function getSchema(connection: Connection, topic: string, version?: Uint8Array): Promise<GetSchemaResult> {
  const result = await connection.request('getSchemaResponse', (requestId) => ({
    getSchema: { requestId, topic, ...(version === undefined ? {} : { schemaVersion: version }) },
  }));
  if (result.type !== 'answered') return result;
  const { answer } = result;
  const { errorCode, schemaVersion } = GetSchemaResponseSchema.field;
  if (isFieldSet(answer, errorCode)) return refused(answer.errorCode, answer.errorMessage);
  if (answer.schema === undefined) return refused(SERVER_ERROR.topicNotFound, 'the answer has no schema');
  const { name, type, schemaData, properties } = answer.schema;
  // Copies: what is kept for long must not keep the bytes alive with which it came in.
  return {
    type: 'found',
    schema: { name, type, data: schemaData.slice(), properties: properties.map(({ key, value }) => ({ key, value })) },
    version: isFieldSet(answer, schemaVersion) ? answer.schemaVersion.slice() : undefined,
  };
}

/** To be asked of the topic's owner. */
export async function getOrCreateSchema(
  connection: Connection,
  topic: string,
  { name, type, data, properties }: TopicSchema,
): Promise<RegisterSchemaResult> {
  const result = await connection.request('getOrCreateSchemaResponse', (requestId) => ({
    getOrCreateSchema: { requestId, topic, schema: { name, type, schemaData: data, properties: [...properties] } },
  }));
  if (result.type !== 'answered') return result;
  const { answer } = result;
  const isRefused = isFieldSet(answer, GetOrCreateSchemaResponseSchema.field.errorCode);
  if (isRefused) return refused(answer.errorCode, answer.errorMessage);
  return { type: 'registered', version: answer.schemaVersion.slice() };
}
