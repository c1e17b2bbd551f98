/** The story of `story.ts` on the screen, in a folder that goes with it. Exits with 1 when a check fails. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runStory } from './story.js';

const folder = mkdtempSync(join(tmpdir(), 'isthmus-remote-child-'));
try {
  const outcome = await runStory({ records: 60_000, folder, print: (line) => console.log(line) });
  const { duplicatesOfOutage, duplicatesOfKill, duplicatesAllowed } = outcome;
  const checks: readonly (readonly [what: string, passed: boolean, detail: string])[] = [
    ['nothing lost', outcome.lost === 0, `${outcome.records - outcome.lost} of ${outcome.records} records`],
    ['nothing else, byte for byte', outcome.strangers === 0, `${outcome.strangers} messages of no record`],
    ['each key in order', outcome.overtaken === 0, `${outcome.overtaken} overtaken`],
    ['duplicates of the outage', duplicatesOfOutage <= duplicatesAllowed, `${duplicatesOfOutage}`],
    ['duplicates of the kill', duplicatesOfKill <= duplicatesAllowed, `${duplicatesOfKill}`],
  ];
  console.log(
    `\nthe link was ${outcome.states.join(', ')}; an interruption may cost ${duplicatesAllowed} duplicates\n`,
  );
  for (const [what, passed, detail] of checks) console.log(`${passed ? 'ok    ' : 'FAILED'}  ${what}: ${detail}`);
  process.exitCode = checks.every(([, passed]) => passed) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
