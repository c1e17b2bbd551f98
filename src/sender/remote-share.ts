/** What all cursors of a node share of one remote: the gate, the slots, what its target takes, and the counters. */
import { type Capabilities, type CapabilityProbe, KnownCapabilities } from './capabilities.js';
import { count, newRemoteCounters } from './counters.js';
import { Gate, type GateFailure } from './gate.js';
import type { Hub } from './hub.js';
import type { HttpOutcome, RemoteLimits, RemoteLookup, SenderRequest } from './ports.js';
import { Slots } from './slots.js';

/** Those of a remote that is not ready, for requests that are still out. */
const NO_LIMITS: RemoteLimits = {
  maxInFlight: 16,
  requestTimeoutMs: 30_000,
  checkIntervalMs: 60_000,
  compression: 'none',
};

export class RemoteShare {
  lookup: RemoteLookup = { state: 'remote_missing' };
  limits = NO_LIMITS;
  /** Names the remote's ID and credential version; empty before the first. */
  credential = '';
  readonly gate: Gate;
  /** Why the gate was closed when its cursors were last told. */
  toldReason: GateFailure | undefined;
  readonly slots = new Slots();
  readonly capabilities = new KnownCapabilities();
  readonly counters = newRemoteCounters();

  constructor(
    readonly name: string,
    private readonly hub: Hub,
  ) {
    this.gate = new Gate(hub.random);
  }

  /** A new ID or credential version begins anew: what was refused before says nothing of it. */
  update(lookup: RemoteLookup): void {
    if (lookup.state === 'credential_unreadable' && this.lookup.state !== lookup.state) {
      this.hub.log({ type: 'credentialUnreadable', level: 'error', remote: this.name });
    }
    this.lookup = lookup;
    if (lookup.state !== 'ready') return;
    this.limits = lookup.limits;
    this.slots.limit = lookup.limits.maxInFlight;
    const credential = `${lookup.remoteId}/${lookup.credentialVersion}`;
    if (credential === this.credential) return;
    this.credential = credential;
    this.gate.reset();
    this.capabilities.reset();
  }

  /** Sends with the current credential; `isCurrent` tells with the answer whether it still is. */
  request(
    request: SenderRequest,
    answered: (outcome: HttpOutcome, isCurrent: boolean) => void,
    { waitedMs = 0, timeoutMs = this.limits.requestTimeoutMs } = {},
  ): void {
    const { credential } = this;
    this.hub.request({ remote: this.name, credential, request, timeoutMs, waitedMs }, (outcome) => {
      const code = outcome.type === 'answer' ? String(outcome.status) : 'error';
      if (outcome.type !== 'notSent') count(this.counters.remoteRequestsTotal, code);
      answered(outcome, credential === this.credential);
    });
  }

  /** What the target takes: at once, or after a probe that the caller has to wait for. */
  takes(topic: string, then: () => void): Capabilities | undefined {
    const { capabilities, hub } = this;
    const probe = capabilities.begin(topic, this.limits, hub.compress, hub.nowMs);
    if (probe === undefined) return capabilities.current;
    this.probe(probe, probe.first(), then);
    return undefined;
  }

  private probe(probe: CapabilityProbe, request: SenderRequest, then: () => void): void {
    this.request(request, (outcome) => {
      const next = probe.answered(outcome);
      if (next !== 'inconclusive' && 'path' in next) return this.probe(probe, next, then);
      this.capabilities.end(probe, next, this.limits, this.hub.nowMs);
      then();
    });
  }
}
