/** The README shows code that compiles: its example is a file of the project. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

it('the example in the README is examples/embed/replicate.ts', () => {
  const example = /```ts\n(?<code>.*?)```/s.exec(read('README.md'))?.groups?.code;
  expect(example).toBe(read('examples/embed/replicate.ts'));
});

it('the README gives a reason for every dependency, and names no other', () => {
  const { dependencies, peerDependencies } = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
  const named = [...read('README.md').matchAll(/^\| `([^`]+)`(?: \(optional peer\))? *\| /gm)]
    .map(([, name]) => name as string)
    .filter((name) => !name.startsWith('isthmus'));
  expect(named.sort()).toEqual(Object.keys({ ...dependencies, ...peerDependencies }).sort());
});
