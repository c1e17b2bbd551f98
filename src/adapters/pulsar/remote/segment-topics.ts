/** The topics behind the segments of a scalable topic, by the names under which a broker knows them. */
import { IsthmusError, show } from '../../../errors.js';
import { isLegacy, type Layout, type Segment } from '../../../layout/index.js';
import type { LayoutReader } from '../../../ports/index.js';

const TOPIC = /^(?:topic|persistent):\/\/([^/]+\/[^/]+\/.+)$/;

export class SegmentTopics {
  /** `tenant/namespace/name`. */
  private readonly path: string;
  /** What a segment id was found to mean: ids are never reused, and a name never changes. */
  private readonly known = new Map<number, string>();

  /** Throws `invalidArgument` for a name that is not whole. */
  constructor(
    topic: string,
    private readonly layouts: LayoutReader,
  ) {
    const path = TOPIC.exec(topic)?.[1];
    if (path === undefined) {
      throw new IsthmusError('invalidArgument', `topic ${show(topic)}: it is topic://tenant/namespace/name`);
    }
    this.path = path;
  }

  /** Undefined for a segment that is not in the layout. Rejects when the layout cannot be read. */
  async of(segmentId: number): Promise<string | undefined> {
    return this.known.get(segmentId) ?? this.nameOf((await this.load()).segments.get(segmentId));
  }

  /** The sealed segments of the layout as it is now, with their topics. Rejects when it cannot be read. */
  async sealed(): Promise<readonly (readonly [segmentId: number, topic: string])[]> {
    const { segments } = await this.load();
    return [...segments.values()].flatMap((segment) => {
      const topic = segment.state === 'sealed' ? this.nameOf(segment) : undefined;
      return topic === undefined ? [] : [[segment.segmentId, topic] as const];
    });
  }

  /** The layout as it is now. */
  async load(): Promise<Layout> {
    return this.layouts.load();
  }

  private nameOf(segment: Segment | undefined): string | undefined {
    if (segment === undefined) return undefined;
    const { segmentId, range, legacyTopicName } = segment;
    const own = `segment://${this.path}/${hex(range.start)}-${hex(range.end)}-${segmentId}`;
    const name = isLegacy(segment) && legacyTopicName !== undefined ? legacyTopicName : own;
    this.known.set(segmentId, name);
    return name;
  }
}

function hex(hash: number): string {
  return hash.toString(16).padStart(4, '0');
}
