/** How much CPU time processes have used: from /proc where there is one, else from `ps`, else unknown. */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

const hasProc = existsSync('/proc/self/stat');
/** In which /proc counts; a hundred on every common machine. */
const ticksPerSecond = hasProc ? Number(told('getconf', ['CLK_TCK']) ?? 100) : 100;

/** Seconds of user and system time of a process and its threads so far; undefined where that cannot be told. */
export async function cpuSeconds(pid: number | undefined): Promise<number | undefined> {
  if (pid === undefined) return undefined;
  return hasProc ? fromProc(pid) : fromPs(pid);
}

async function fromProc(pid: number): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The second field is the program's name, which may hold blanks and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system] = [fields[11], fields[12]].map(Number);
  return user === undefined || system === undefined ? undefined : known((user + system) / ticksPerSecond);
}

/** `[[days-]hours:]minutes:seconds`, the seconds with a fraction on some systems. */
function fromPs(pid: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    execFile('ps', ['-o', 'time=', '-p', String(pid)], (error, output) => {
      if (error !== null) return resolve(undefined);
      const [clock = '', days = '0'] = output.trim().split('-').reverse();
      const seconds = clock.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
      resolve(known(Number(days) * 86_400 + seconds));
    });
  });
}

function known(seconds: number): number | undefined {
  return Number.isFinite(seconds) ? seconds : undefined;
}

function told(program: string, args: readonly string[]): string | undefined {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}
