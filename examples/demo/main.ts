/**
 * The demo: runs the replicating process of `run.ts`, kills it with SIGKILL twice on its way, and starts it again each
 * time. What it has stored lies in `demo-data`; if the demo itself is killed, the next start goes on from there.
 */
import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDER = 'demo-data';
const RUN = fileURLToPath(new URL('./run.ts', import.meta.url));

/** When the process is killed: in the middle of which act, and how long after that has begun. */
const KILLS: readonly { readonly act: string; readonly afterMs: number }[] = [
  { act: 'c is cut off', afterMs: 400 },
  { act: 'c is back', afterMs: 500 },
];

if (existsSync(FOLDER)) console.log(`going on where an earlier demo was killed (${FOLDER}; remove it to begin anew)`);

let lives = 0;
const kills = [...KILLS];
for (;;) {
  const end = await live();
  if (end !== 'killed') {
    process.exitCode = end;
    break;
  }
}

/** One life of the process: its exit code, or that it was killed here. */
function live(): Promise<number | 'killed'> {
  lives++;
  const child = fork(RUN, [FOLDER], {
    execArgv: process.execArgv,
    env: { ...process.env, ISTHMUS_DEMO_LIVES: String(lives) },
  });
  let dying: NodeJS.Timeout | undefined;
  child.on('message', ({ what }: { readonly what: string }) => {
    const [kill] = kills;
    if (kill === undefined || dying !== undefined || !what.startsWith(kill.act)) return;
    dying = setTimeout(() => {
      kills.shift();
      child.kill('SIGKILL');
    }, kill.afterMs);
  });
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => {
      clearTimeout(dying);
      if (signal !== 'SIGKILL') return resolve(code ?? 1);
      console.log(
        `${process.stdout.isTTY ? '\r\u001b[K' : ''}kill -9 ${child.pid}: the process is gone; starting it again`,
      );
      resolve('killed');
    });
  });
}
