/**
 * Another process on the same store. `append FOLDER COUNT`: it appends so many entries to the first segment and ends.
 * `fill FOLDER`: it appends until a commit fails, and prints what became of all. Started as
 * `node --import tsx lmdb-process.ts append FOLDER COUNT`.
 */
import { openStore } from 'isthmus/adapters/lmdb';
import { openTopic } from './lmdb.js';

const [, , task, folder = '', count = 'Infinity'] = process.argv;
const entry = { head: Uint8Array.of(1), payload: new Uint8Array(9000) };
const print = (line: string) => process.stdout.write(`${line}\n`);

process.on('unhandledRejection', (error) => {
  print(`unhandled ${error}`);
  process.exit(1);
});
const store = await openStore(folder);
const topic = await openTopic(store);
let stored = 0;
try {
  for (; stored < Number(count); stored++) await topic.append(0, entry);
} catch (error) {
  print(`failed ${error}`);
}
print(`stored ${stored}`);
if (task === 'fill') {
  await topic.append(0, entry).catch((error: unknown) => print(`later ${error}`));
  print(`read ${[...topic.entries(0)].length}`);
}
await store.close();
print('closed');
