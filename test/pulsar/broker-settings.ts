/** The settings of a broker for tests: a standalone cluster on loopback, and the variants that tests ask for. */
import type { Certificate } from './secrets.js';

export interface BrokerOptions {
  /** Looks often for what a broker does by itself: expiry, retention, quotas, idle topics, automatic layout changes. */
  readonly shortChecks?: boolean;
  /** Notices a silent connection after 5 to 10 s instead of 30 to 60. */
  readonly quickTakeOver?: boolean;
  readonly transactions?: boolean;
  /** TLS, tokens and rights. The roles `admin` and `broker` are super-users; every other role has what it is given. */
  readonly secure?: boolean;
  /** `maxMessageSize`, in bytes; default 5 MiB. */
  readonly maxMessageBytes?: number;
  /**
   * Lets the JVM optimise all it can, for measurements. By default it compiles quickly instead: a broker is ready in
   * half the time, and slower at its best.
   */
  readonly optimised?: boolean;
  /** Any other keys of the broker's configuration. */
  readonly settings?: Readonly<Record<string, string | number | boolean>>;
}

export interface BrokerPorts {
  readonly service: number;
  readonly web: number;
  readonly bookie: number;
  readonly serviceTls: number;
  readonly webTls: number;
}

/** What a broker needs for `secure`. */
export interface BrokerSecrets {
  readonly certificate: Certificate;
  readonly tokenSecret: Buffer;
  /** The token with which brokers call each other. */
  readonly brokerToken: string;
}

type Settings = Record<string, string | number | boolean>;

const SHORT_CHECKS: Settings = {
  messageExpiryCheckIntervalInMinutes: 1,
  subscriptionExpiryCheckIntervalInMinutes: 1,
  backlogQuotaCheckIntervalInSeconds: 5,
  retentionCheckIntervalInSeconds: 10,
  brokerDeleteInactiveTopicsFrequencySeconds: 5,
  scalableTopicAutoScaleIntervalSeconds: 5,
};

/** The text of a configuration file. `secrets` is there for a secure broker only. */
export function formatSettings(
  cluster: string,
  ports: BrokerPorts,
  options: BrokerOptions,
  secrets: BrokerSecrets | undefined,
): string {
  const { shortChecks = false, quickTakeOver = false, transactions = false, maxMessageBytes, settings } = options;
  const all: Settings = {
    clusterName: cluster,
    bindAddress: '127.0.0.1',
    advertisedAddress: '127.0.0.1',
    allowLoopback: true,
    brokerServicePort: ports.service,
    webServicePort: ports.web,
    managedLedgerDefaultEnsembleSize: 1,
    managedLedgerDefaultWriteQuorum: 1,
    managedLedgerDefaultAckQuorum: 1,
    loadManagerClassName: 'org.apache.pulsar.broker.loadbalance.NoopLoadManager',
    systemTopicEnabled: transactions,
    topicLevelPoliciesEnabled: transactions,
    transactionCoordinatorEnabled: transactions,
    functionsWorkerEnabled: false,
    webSocketServiceEnabled: false,
    // Idle topics are deleted only where a test watches that.
    brokerDeleteInactiveTopicsEnabled: shortChecks,
    ...(shortChecks ? SHORT_CHECKS : {}),
    ...(quickTakeOver ? { keepAliveIntervalSeconds: 5 } : {}),
    ...(maxMessageBytes === undefined ? {} : { maxMessageSize: maxMessageBytes }),
    ...(secrets === undefined ? {} : secureSettings(ports, secrets)),
    ...settings,
  };
  return Object.entries(all)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}

function secureSettings(ports: BrokerPorts, { certificate, tokenSecret, brokerToken }: BrokerSecrets): Settings {
  return {
    brokerServicePortTls: ports.serviceTls,
    webServicePortTls: ports.webTls,
    tlsCertificateFilePath: certificate.certificateFile,
    tlsKeyFilePath: certificate.keyFile,
    tlsTrustCertsFilePath: certificate.certificateFile,
    authenticationEnabled: true,
    authenticationProviders: 'org.apache.pulsar.broker.authentication.AuthenticationProviderToken',
    tokenSecretKey: `data:;base64,${tokenSecret.toString('base64')}`,
    authorizationEnabled: true,
    superUserRoles: 'admin,broker',
    brokerClientAuthenticationPlugin: 'org.apache.pulsar.client.impl.auth.AuthenticationToken',
    brokerClientAuthenticationParameters: `token:${brokerToken}`,
    // How often an expired token is noticed.
    authenticationRefreshCheckSeconds: 5,
  };
}
