/** What an acceptance suite says of an adapter. */
import type { RegisterTest } from 'isthmus/testing';

/** The first rule that an adapter breaks, or `accepted`. */
export async function verdictOf(suite: (test: RegisterTest) => void): Promise<string> {
  const tests: (() => Promise<void>)[] = [];
  suite((_, test) => tests.push(test));
  for (const test of tests) {
    try {
      await test();
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
  return 'accepted';
}
