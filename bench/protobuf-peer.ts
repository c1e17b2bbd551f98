/**
 * What forwarding costs with a general protobuf library: decode the metadata, change it, encode it, and compute the
 * checksum over everything. The message type is described here, since nothing is generated in this project.
 */
import { create, createFileRegistry, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { crc32c } from '@node-rs/crc32';
import { parseEntry, SOURCE_POSITION_PROPERTY } from 'isthmus';

const LABEL = { optional: 1, required: 2, repeated: 3 } as const;
const TYPE = { uint64: 4, int32: 5, bool: 8, string: 9, message: 11, bytes: 12, uint32: 13 } as const;

type FieldSpec = readonly [name: string, number: number, label: keyof typeof LABEL, type: keyof typeof TYPE];

const KEY_VALUE: FieldSpec[] = [
  ['key', 1, 'required', 'string'],
  ['value', 2, 'required', 'string'],
];
const METADATA: FieldSpec[] = [
  ['producer_name', 1, 'required', 'string'],
  ['sequence_id', 2, 'required', 'uint64'],
  ['publish_time', 3, 'required', 'uint64'],
  ['properties', 4, 'repeated', 'message'],
  ['replicated_from', 5, 'optional', 'string'],
  ['partition_key', 6, 'optional', 'string'],
  ['compression', 8, 'optional', 'int32'],
  ['uncompressed_size', 9, 'optional', 'uint32'],
  ['num_messages_in_batch', 11, 'optional', 'int32'],
  ['schema_version', 16, 'optional', 'bytes'],
  ['partition_key_b64_encoded', 17, 'optional', 'bool'],
  ['highest_sequence_id', 24, 'optional', 'uint64'],
  ['entry_hash_min', 33, 'optional', 'uint32'],
  ['entry_hash_max', 34, 'optional', 'uint32'],
];

const field = ([name, number, label, type]: FieldSpec) => ({
  name,
  number,
  label: LABEL[label],
  type: TYPE[type],
  ...(type === 'message' ? { typeName: '.bench.KeyValue' } : {}),
});
const file = create(FileDescriptorProtoSchema, {
  name: 'bench.proto',
  package: 'bench',
  syntax: 'proto2',
  messageType: [
    { name: 'KeyValue', field: KEY_VALUE.map(field) },
    { name: 'MessageMetadata', field: METADATA.map(field) },
  ],
});
const registry = createFileRegistry(file, () => undefined);
const metadataType = registry.getMessage('bench.MessageMetadata');
const keyValueType = registry.getMessage('bench.KeyValue');

/** Decodes, stamps and encodes an entry; returns the length of the new metadata. */
export function protobufForward(bytes: Uint8Array, entryId: number): number {
  if (metadataType === undefined || keyValueType === undefined) throw new Error('the bench types are not registered');
  const { metadataBytes, payload } = parseEntry(bytes);
  const metadata = fromBinary(metadataType, metadataBytes) as Message & {
    replicatedFrom: string;
    properties: unknown[];
  };
  metadata.replicatedFrom = 'a';
  const position = { key: SOURCE_POSITION_PROPERTY, value: `1007:${entryId}` };
  metadata.properties.push(Object.assign(create(keyValueType), position));
  const encoded = toBinary(metadataType, metadata);
  const head = Buffer.alloc(10 + encoded.length);
  head.writeUInt32BE(encoded.length, 6);
  head.set(encoded, 10);
  const crc = crc32c(asBuffer(payload), crc32c(head.subarray(6)));
  head.writeUInt16BE(0x0e01, 0);
  head.writeUInt32BE(crc, 2);
  return encoded.length;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
