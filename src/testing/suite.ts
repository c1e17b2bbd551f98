/** What the acceptance suites share: a fresh adapter for each test, rules that name themselves, and patience. */

/** Registers one test, as vitest's, jest's and node's own `test` do. */
export type RegisterTest = (name: string, test: () => Promise<void>) => void;

/** What every setup of a suite may say beside the adapter. */
export interface SuiteSetup {
  /** Puts the adapter away. */
  readonly teardown?: () => Promise<void> | void;
  /** How long the suite waits for what the adapter does by itself, in milliseconds. Default 5,000. */
  readonly patienceMs?: number;
}

/** Waits for something that an adapter does by itself; fails with the rule when it does not come about. */
export type Eventually = (condition: () => boolean | Promise<boolean>, rule: string) => Promise<void>;

/** Fails with a rule that is broken. */
export function check(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new Error(rule);
}

/** Turns work on an adapter into a test that makes a fresh one and puts it away. */
export function onFresh<Setup extends SuiteSetup>(
  setup: () => Promise<Setup> | Setup,
): (work: (setup: Setup, eventually: Eventually) => Promise<void>) => () => Promise<void> {
  return (work) => async () => {
    const made = await setup();
    try {
      await work(made, eventuallyWithin(made.patienceMs ?? 5_000));
    } finally {
      await made.teardown?.();
    }
  };
}

/** Looks again for a few turns of the event loop, and then every 10 ms. */
function eventuallyWithin(patienceMs: number): Eventually {
  return async (condition, rule) => {
    for (let tries = 0; !(await condition()); tries++) {
      check(tries < 20 + patienceMs / 10, rule);
      await pause(tries < 20 ? 0 : 10);
    }
  };
}

/** Lets time pass in which something must not happen. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A promise that can be asked whether it has been settled. */
export interface Watched<T> {
  readonly promise: Promise<T>;
  readonly isSettled: () => boolean;
}

export function watched<T>(promise: Promise<T>): Watched<T> {
  let settled = false;
  const done = () => {
    settled = true;
  };
  promise.then(done, done);
  return { promise, isSettled: () => settled };
}

/** True when a promise rejects. */
export async function rejects(promise: Promise<unknown>): Promise<boolean> {
  try {
    await promise;
    return false;
  } catch {
    return true;
  }
}

/**
 * Follows a sequence of layouts over a change and to its end, and checks what every such sequence promises: the layout
 * now, and again after every change, until the signal aborts. Returns what it told.
 */
export async function checkLayouts<T extends { readonly epoch: number }>(
  layouts: (signal: AbortSignal) => AsyncIterable<T>,
  change: () => Promise<void> | void,
  eventually: Eventually,
): Promise<readonly [T, ...T[]]> {
  const stop = new AbortController();
  const seen: T[] = [];
  const following = watched(follow(layouts(stop.signal), seen));
  try {
    const told = () => following.isSettled() || seen.length > 0;
    await eventually(told, 'the watch does not begin with the present layout');
    const first = seen[0]?.epoch ?? -1;
    await change();
    const toldMore = () => following.isSettled() || (seen.at(-1)?.epoch ?? -1) > first;
    await eventually(toldMore, 'the watch does not tell of a change');
    if (following.isSettled()) await following.promise;
    check(!following.isSettled(), 'the watch ends before its signal: it does not tell of a change');
  } finally {
    stop.abort();
  }
  await eventually(following.isSettled, 'the watch does not end with its signal');
  check(ascends(seen), `the watch repeats or reorders epochs: ${seen.map(({ epoch }) => epoch)}`);
  return seen as [T, ...T[]];
}

async function follow<T>(sequence: AsyncIterable<T>, seen: T[]): Promise<void> {
  for await (const value of sequence) seen.push(value);
}

function ascends(layouts: readonly { readonly epoch: number }[]): boolean {
  return layouts.every(({ epoch }, i) => i === 0 || epoch > (layouts[i - 1]?.epoch ?? -1));
}
