/** Field numbers of Pulsar's MessageMetadata, SingleMessageMetadata, KeyValue and BrokerEntryMetadata (5.0.1). */

export const Outer = {
  producerName: 1,
  sequenceId: 2,
  publishTime: 3,
  properties: 4,
  replicatedFrom: 5,
  partitionKey: 6,
  replicateTo: 7,
  compression: 8,
  uncompressedSize: 9,
  numMessagesInBatch: 11,
  eventTime: 12,
  encryptionKeys: 13,
  encryptionAlgo: 14,
  encryptionParam: 15,
  schemaVersion: 16,
  partitionKeyB64: 17,
  orderingKey: 18,
  deliverAtTime: 19,
  markerType: 20,
  txnLeastBits: 22,
  txnMostBits: 23,
  highestSequenceId: 24,
  nullValue: 25,
  uuid: 26,
  numChunks: 27,
  totalChunkSize: 28,
  chunkId: 29,
  nullPartitionKey: 30,
  compactedIndexes: 31,
  schemaId: 32,
  stampMin: 33,
  stampMax: 34,
} as const;

export const Inner = {
  properties: 1,
  partitionKey: 2,
  payloadSize: 3,
  compactedOut: 4,
  eventTime: 5,
  partitionKeyB64: 6,
  orderingKey: 7,
  sequenceId: 8,
  nullValue: 9,
  nullPartitionKey: 10,
} as const;

export const KeyValue = { key: 1, value: 2 } as const;
export const Broker = { timestamp: 1, index: 2 } as const;

/** The property that carries the position of an entry in its source segment (E10). */
export const SOURCE_POSITION_PROPERTY = '__MSG_PROP_REPL_SOURCE_POSITION';
