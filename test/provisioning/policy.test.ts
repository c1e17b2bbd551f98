/** The policy as a configuration states it. */
import { describe, expect, it } from 'vitest';
import { policyFromConfig } from '../../src/provisioning/index.js';
import { refusal } from '../support/expect.js';

const released = 'createTopicToRemoteClusterForReplication';
const earlier = 'replicationTriggerRemoteTopicCreation';

describe('policyFromConfig', () => {
  it('creates and stops by default, as released brokers do', () => {
    expect(policyFromConfig({ brokerPort: 6650 })).toEqual({
      createTopicToRemoteCluster: true,
      onPartitionMismatch: 'stop',
      requireSameShape: false,
    });
  });

  it.each([
    [{ [released]: false }, false],
    [{ [earlier]: false }, false],
    [{ [released]: 'false', [earlier]: false }, false],
    [{ [released]: 'true' }, true],
    [{ [released]: true, [earlier]: 'true' }, true],
  ])('B61: takes either name of the option: %o', (config, expected) => {
    expect(policyFromConfig(config).createTopicToRemoteCluster).toBe(expected);
  });

  it('B61: refuses two names that contradict each other, and names both', () => {
    for (const value of [true, false]) {
      const config = { [released]: value, [earlier]: String(!value) };
      expect(refusal(() => policyFromConfig(config))).toBe('invalidArgument');
      expect(() => policyFromConfig(config)).toThrow(new RegExp(`${released} is ${value} and ${earlier} is ${!value}`));
    }
  });

  it.each([
    [{ [released]: 'yes' }],
    [{ [earlier]: 1 }],
    [{ onPartitionMismatch: 'grow' }],
    [{ onPartitionMismatch: null }],
    [{ requireSameShape: '' }],
  ])('refuses %o', (config) => {
    expect(refusal(() => policyFromConfig(config))).toBe('invalidArgument');
  });

  it('takes the other options', () => {
    expect(policyFromConfig({ onPartitionMismatch: 'expand', requireSameShape: 'true' })).toMatchObject({
      onPartitionMismatch: 'expand',
      requireSameShape: true,
    });
  });
});
