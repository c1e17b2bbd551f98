/** What stands in front of every write of a link: this node's pace, and the gates that ask the members. */
import { messageOf } from '../../errors.js';
import type { Clock, ClusterMembers, LinkWrite } from '../../ports/index.js';
import { postureGate, REMOTE_ENTRY_TYPE, releaseGate, WRITE_GATES, WritePace } from '../../sender/index.js';
import { type LinkRefusal, refused } from './link-answers.js';
import { within } from './within.js';

const POSTURE_MS = 5_000;

export interface GatesParts {
  readonly node: string;
  readonly members: ClusterMembers | undefined;
  readonly clock: Clock;
  readonly isSecure: () => boolean;
}

export class LinkGates {
  private readonly pace = new WritePace();

  constructor(private readonly parts: GatesParts) {}

  /** Undefined when the write may go on. */
  async refusal(kind: LinkWrite['type']): Promise<LinkRefusal | undefined> {
    return this.paced() ?? this.gates(kind);
  }

  private paced(): LinkRefusal | undefined {
    const taken = this.pace.linkWrite(this.parts.clock.now());
    return taken === 'taken' ? undefined : { ...refused(429, 'this node takes 60 writes of links a minute'), ...taken };
  }

  private async gates(kind: LinkWrite['type']): Promise<LinkRefusal | undefined> {
    const { members, node, isSecure, clock } = this.parts;
    const alone = { members: [{ node, entryTypes: REMOTE_ENTRY_TYPE }], raftServers: [] };
    const reading = await (members?.releases() ?? Promise.resolve(alone)).catch((error: unknown) => ({
      error: messageOf(error),
    }));
    let answer = releaseGate(reading);
    if (answer.allowed && WRITE_GATES[kind].includes('posture')) {
      const own = { securityOn: isSecure(), legacyAuth: false, raftTls: true };
      const names = members?.names() ?? [node];
      const postures = names.map(async (name) => {
        if (members === undefined) return [name, own] as const;
        const told = within(clock, POSTURE_MS, (signal) => members.posture(name, signal));
        const posture = await told.catch(() => 'late' as const);
        return [name, posture === 'late' ? undefined : posture] as const;
      });
      answer = postureGate(answer, new Map(await Promise.all(postures)));
    }
    if (answer.allowed) return undefined;
    const { status, class: found, nodes, reason } = answer;
    return { ...refused(status, reason ?? `members fall short: ${found}`), class: found, members: nodes };
  }
}
