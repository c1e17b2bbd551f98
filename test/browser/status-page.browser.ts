/**
 * The status page in a real browser: what is drawn is where it must be, and what it says is what the document says.
 * With SCREENSHOTS set to a folder it leaves pictures there; `diverged.png` is `docs/status-page.png`.
 */
import { createLayout } from 'isthmus';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type StatusServer,
  type StatusView,
  startStatusServer,
  statusDocument,
  type TopicView,
} from '../../examples/pulsar-replicator/status/index.js';
import {
  convergedTopic,
  divergedTopic,
  nowMs,
  replicator,
  segment,
  splitLayout,
  statusView,
} from '../examples/status-view.js';
import { launchChromium } from './chromium.js';

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
});

const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

interface Look {
  readonly width?: number;
  readonly colorScheme?: 'light' | 'dark';
}

interface Shown {
  readonly page: Page;
  readonly server: StatusServer;
  /** What the page complained of: errors, refusals of its policy. */
  readonly complaints: string[];
  /** Changes what the server tells, from the next question on. */
  tell(view: StatusView): void;
}

async function shown(first: StatusView, { width = 1180, colorScheme = 'light' }: Look = {}): Promise<Shown> {
  let view = first;
  const server = await startStatusServer({ port: 0, status: () => statusDocument(view), metrics: () => '' });
  if (server.type === 'failed') throw new Error(server.reason);
  ending.push(() => server.close());
  const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });
  ending.push(() => page.close());
  const complaints: string[] = [];
  page.on('pageerror', ({ message }) => complaints.push(message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  await page.goto(server.url);
  await page.locator('#view > *').first().waitFor();
  const tell = (next: StatusView) => {
    view = next;
  };
  return { page, server, complaints, tell };
}

async function picture(page: Page, name: string): Promise<void> {
  const { SCREENSHOTS } = process.env;
  if (SCREENSHOTS !== undefined) await page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: true });
}

/** Where the bars of a list lie on the ring, in hashes: what they are named with, and from where to where. */
async function places(page: Page, list: string): Promise<[string, number, number][]> {
  const bars = await page.getByRole('list', { name: list, exact: true }).all();
  const found: [string, number, number][] = [];
  for (const ring of bars) {
    const whole = await ring.boundingBox();
    for (const bar of await ring.getByRole('listitem').all()) {
      const box = await bar.boundingBox();
      if (whole === null || box === null) throw new Error(`${list} is not drawn`);
      const hash = (x: number) => ((x - whole.x) / whole.width) * 0x10000;
      found.push([(await bar.getAttribute('aria-label')) ?? '', hash(box.x), hash(box.x + box.width)]);
    }
  }
  return found;
}

describe('the status page', () => {
  it('draws every segment where its range lies, sealed ones beneath, and ticks where buckets begin', async () => {
    const { page, complaints } = await shown(statusView([divergedTopic('orders')]));
    const { segments } = splitLayout();
    const drawn = [
      ...(await places(page, 'active segments of us-west')),
      ...(await places(page, 'sealed segments of us-west')),
    ];
    expect(drawn.length).toBe(segments.size);
    for (const [label, from, to] of drawn) {
      const id = Number(/segment (\d+)/.exec(label)?.[1]);
      const { start = -1, end = -1 } = segments.get(id)?.range ?? {};
      // A pixel is worth about 80 hashes here.
      expect(Math.abs(from - start), label).toBeLessThan(80);
      expect(Math.abs(to - end - 1), label).toBeLessThan(80);
    }
    const active = page.getByRole('list', { name: 'active segments of us-west' });
    const sealed = page.getByRole('list', { name: 'sealed segments of us-west' });
    const [above, beneath] = [await active.boundingBox(), await sealed.boundingBox()];
    expect(beneath?.y).toBeGreaterThanOrEqual((above?.y ?? 0) + (above?.height ?? 0));
    const fine = active.locator('[data-segment="6"]');
    const bar = await fine.locator('> div').boundingBox();
    const ticks = await Promise.all((await fine.locator('i').all()).map((tick) => tick.boundingBox()));
    expect(ticks.map((tick) => Math.round((((tick?.x ?? 0) - (bar?.x ?? 0)) / (bar?.width ?? 1)) * 8))).toEqual([
      1, 2, 3, 4, 5, 6, 7,
    ]);
    expect(await sealed.locator('[data-segment="0"]').textContent()).toContain('18,204 left');
    expect(complaints).toEqual([]);
    await picture(page, 'diverged');
  });

  it('marks diverged ranges in words and in place, and unmarks them when they converge', async () => {
    const { page, tell } = await shown(statusView([divergedTopic('orders')]));
    const band = 'where the layouts are the same';
    expect((await places(page, band)).map(([label]) => label)).toEqual([
      '0000-3fff differs',
      '4000-7fff is the same',
      '8000-bfff differs',
      'c000-ffff is the same',
    ]);
    await page.getByText('us-west has 2 segments of 4 buckets, eu-central has 1 segment of 4 buckets').waitFor();
    expect(await page.locator('.seg.differs').count()).toBe(5);
    expect(await page.locator('summary').textContent()).toContain('≠ diverged on 2 ranges');
    await page.locator('summary').click();
    await page.locator('summary').click();
    tell(statusView([convergedTopic('orders')]));
    await page.getByText('= converged').waitFor();
    expect((await places(page, band)).map(([label]) => label)).toEqual(['0000-ffff is the same']);
    expect(await page.locator('.seg.differs').count()).toBe(0);
    expect(await page.locator('.chip.warn').count()).toBe(0);
  });

  it('says what each segment waits for, who has it, and what to do', async () => {
    const { page } = await shown(statusView([divergedTopic('orders')]));
    const rows = page.getByRole('region', { name: 'segments eu-central to us-west' }).getByRole('row');
    const cells = await Promise.all((await rows.all()).map((row) => row.getByRole('cell').allTextContents()));
    expect(cells[1]?.slice(0, 3)).toEqual(['2 !', 'this', '3,902']);
    expect(cells[1]?.[3]).toMatch(/^an operator: held: .* \(at 8812:41\)What to do: .*skip it/);
    expect(cells.at(-1)).toEqual(['3', 'other', '–', 'its turn: another process has it']);
    expect(await page.title()).toContain('! 1 topic to look at');
  });

  it('lists topics that are not on every cluster, with what is in the way, until they are', async () => {
    const decided = {
      type: 'stop',
      outcome: 'stop',
      reason: 'scalablePartial',
      message: 'local: a scalable topic of 2 segments; remote: a scalable topic of 2 segments, absent 1',
    } as const;
    const counters = { decisions: { scalablePartial: 2 }, creations: {}, starts: 0, stops: 0 };
    const creation = { topic: 'orders', isReady: false, clusters: [{ cluster: 'b', decision: decided, counters }] };
    const { page, complaints, tell } = await shown({ ...statusView([convergedTopic('other')]), creations: [creation] });
    await page.getByText('1 topic is not on every cluster yet, and not replicated').waitFor();
    expect(await page.locator('[data-key="incomplete"] li').textContent()).toMatch(
      /^orders on b: .*absent 1.*Delete it there, or complete it\.$/,
    );
    expect(complaints).toEqual([]);
    await picture(page, 'incomplete');
    tell({ ...statusView([convergedTopic('other')]), creations: [{ ...creation, isReady: true }] });
    await page.locator('[data-key="incomplete"]').waitFor({ state: 'detached' });
  });

  it('keeps what was opened or closed by hand when it draws anew', async () => {
    const { page, tell } = await shown(statusView([convergedTopic('one'), convergedTopic('two')]));
    await page.locator('summary', { hasText: 'two' }).click();
    tell({ ...statusView([divergedTopic('one'), convergedTopic('two')]), nowMs: nowMs + 2_000 });
    await page.getByText('≠ diverged').waitFor();
    const open = page.locator('details[open] h2');
    expect(await open.allTextContents()).toEqual(['one']);
  });

  it('shows hostile names and messages as text', async () => {
    const evil = '<img src=x onerror="document.title=1"></h2><script>document.title=2</script>&amp;';
    const topic: TopicView = {
      topic: evil,
      clusters: [{ cluster: `a${evil}`, failure: evil }, { cluster: 'b' }],
      directions: [
        {
          from: `a${evil}`,
          status: {
            ...replicator(evil, [segment(0, { for: 'source', reason: evil })]),
            failure: evil,
          },
        },
      ],
    };
    const view = statusView([topic]);
    const { page, complaints } = await shown({ ...view, process: evil, members: [{ ...memberNamed(evil) }] });
    expect(await page.locator('h2').textContent()).toBe(evil);
    expect(await page.locator('td', { hasText: 'the source' }).textContent()).toBe(`the source: ${evil}`);
    expect(await page.locator('.failure').textContent()).toBe(`does not go on: ${evil}`);
    expect(await page.locator('#view img, #view script').count()).toBe(0);
    expect(await page.title()).toContain(evil);
    expect(complaints).toEqual([]);
  });

  it('says when the program does not answer, and how old the figures are, until it answers again', async () => {
    const { page, server } = await shown(statusView([convergedTopic('orders')]));
    expect(await page.getByRole('alert').isHidden()).toBe(true);
    await page.getByText('up to date').waitFor();
    await page.route('**/status.json', (route) => route.fulfill({ status: 500, body: 'it broke' }));
    await page.getByRole('alert').getByText('does not answer any more (it answers 500: it broke)').waitFor();
    await page.unroute('**/status.json');
    await page.getByRole('alert').waitFor({ state: 'hidden' });
    await server.close();
    await page.getByRole('alert').getByText('does not answer any more (no connection)').waitFor();
    await page.getByText(/figures are \d+ s old/).waitFor();
    expect(await page.locator('h2').textContent()).toBe('orders');
    await picture(page, 'gone');
  });

  it.each<[number, 'light' | 'dark']>([
    [360, 'light'],
    [1180, 'dark'],
  ])('fits %d px, %s, with many segments and long names', async (width, colorScheme) => {
    const long = `persistent://tenant/namespace/${'a-very-long-name'.repeat(8)}`;
    const fine = createLayout({ segments: 64, buckets: 64, nowMs });
    const many = {
      ...convergedTopic('many'),
      clusters: [
        { cluster: 'a', layout: fine },
        { cluster: 'b', layout: fine },
      ],
    } as const;
    const views = [divergedTopic(long), many];
    const { page } = await shown(statusView(views), { width, colorScheme });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    const bars = await places(page, 'active segments of b');
    expect(bars.length).toBe(64);
    await picture(page, `${width}-${colorScheme}`);
  });
});

function memberNamed(name: string) {
  return { name, isSelf: true, lastSeenMsAgo: 0 };
}
