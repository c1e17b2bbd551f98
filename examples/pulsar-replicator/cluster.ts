/** One cluster as the program reaches it: its brokers, its admin REST, and its state topic. */
import { readFileSync } from 'node:fs';
import type { TopicAdmin } from 'isthmus';
import {
  createPulsarClient,
  PulsarAdmin,
  type PulsarClient,
  pulsarTopicAdmin,
  StateTopic,
} from 'isthmus/adapters/pulsar';
import { systemClock } from 'isthmus/drivers';
import type { ClusterConfig, Config, TokenSource } from './config.js';

export class Cluster {
  readonly client: PulsarClient;
  readonly admin: PulsarAdmin;
  /** Whether topics exist; it is with the layoutToken that they are created. */
  readonly topicAdmin: TopicAdmin;
  /** Cursors of what is replicated to this cluster, and who takes part. */
  readonly state: StateTopic;
  readonly stateTopic: string;
  readonly lockTopic: string;

  constructor(
    readonly name: string,
    readonly config: ClusterConfig,
    { name: process, stateNamespace }: Config,
  ) {
    const { serviceUrls, adminUrls, caFile, token, layoutToken } = config;
    const ca = caFile === undefined ? undefined : readFileSync(caFile, 'utf8');
    const tokens = token === undefined ? {} : { token: readerOf(token) };
    this.client = createPulsarClient({ serviceUrls, ...tokens, ...(ca === undefined ? {} : { tls: { ca } }) });
    const adminOptions = {
      urls: adminUrls,
      ...tokens,
      ...(layoutToken === undefined ? {} : { layoutToken: readerOf(layoutToken) }),
      ...(ca === undefined ? {} : { ca }),
    };
    this.admin = new PulsarAdmin(adminOptions);
    this.topicAdmin = pulsarTopicAdmin(adminOptions);
    this.stateTopic = `persistent://${stateNamespace}/state`;
    this.lockTopic = `persistent://${stateNamespace}/lock`;
    this.state = new StateTopic({ client: this.client, topic: this.stateTopic, process, clock: systemClock });
  }

  async close(): Promise<void> {
    await this.state.close();
    await this.client.close();
  }
}

function readerOf(source: TokenSource): () => string {
  return () => {
    if ('file' in source) return readFileSync(source.file, 'utf8').trim();
    const token = process.env[source.env];
    if (token === undefined || token === '') throw new Error(`the environment variable ${source.env} is not set`);
    return token;
  };
}
