/**
 * Pulsar's own Java classes as a partner in the same run: a small program under bench/peer, built with Maven, that
 * takes commands on its standard input. Where Java 21 or Maven is missing, it says so and the rows are left out.
 */
import { type ChildProcessWithoutNullStreams, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MIN_JAVA = 21;
const folder = fileURLToPath(new URL('../../bench/peer', import.meta.url));

/** The peer, or the reason why there is none. */
export async function startPeer(): Promise<JavaPeer | string> {
  const java = findJava();
  if (java === undefined) return `Java ${MIN_JAVA} or newer was not found (JAVA_HOME, the path, the usual folders)`;
  const target = join(folder, 'target');
  if (!existsSync(join(target, 'classes', 'isthmus', 'bench', 'Peer.class'))) {
    try {
      const env = { ...process.env, JAVA_HOME: java.home };
      execFileSync('mvn', ['-q', '-B', '-f', join(folder, 'pom.xml'), 'package'], { env, stdio: 'pipe' });
    } catch (error) {
      return `Maven did not build the Java peer: ${error instanceof Error ? error.message.split('\n')[0] : error}`;
    }
  }
  // The switch that names Unsafe is of Java 23 and newer.
  const options = java.version >= 23 ? [`@${join(folder, 'jvm.args')}`] : [];
  const classpath = [join(target, 'classes'), join(target, 'lib', '*')].join(delimiter);
  const peer = new JavaPeer(
    spawn(join(java.home, 'bin', 'java'), [...options, '-cp', classpath, 'isthmus.bench.Peer']),
  );
  await peer.ask('info');
  return peer;
}

export class JavaPeer {
  private readonly waiting: ((line: string) => void)[] = [];

  constructor(private readonly process: ChildProcessWithoutNullStreams) {
    createInterface(process.stdout).on('line', (line) => this.waiting.shift()?.(line));
    process.on('exit', () => {
      for (const resolve of this.waiting.splice(0)) resolve('{"error":"the Java peer has ended"}');
    });
  }

  /** Sends one command and returns its answer. */
  async ask(command: string): Promise<Record<string, unknown>> {
    const line = await new Promise<string>((resolve) => {
      this.waiting.push(resolve);
      this.process.stdin.write(`${command}\n`);
    });
    const answer = JSON.parse(line) as Record<string, unknown>;
    if (answer.error !== undefined) throw new Error(`the Java peer: ${String(answer.error)}`);
    return answer;
  }

  /** Nanoseconds of one operation, as the peer measures them. */
  async nsPerOp(command: string): Promise<number> {
    return Number((await this.ask(command)).nsPerOp);
  }

  async stop(): Promise<void> {
    await this.ask('quit');
  }
}

/** The first Java that is new enough: the home folder that JAVA_HOME, the path or the usual folders lead to. */
function findJava(): { home: string; version: number } | undefined {
  for (const home of javaHomes()) {
    const version = javaVersion(join(home, 'bin', 'java'));
    if (version >= MIN_JAVA) return { home, version };
  }
  return undefined;
}

function javaHomes(): string[] {
  const homes = [process.env.JAVA_HOME];
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const java = join(folder, 'java');
    if (existsSync(java)) homes.push(dirname(dirname(realpathSync(java))));
  }
  for (const folder of ['/usr/lib/jvm', '/Library/Java/JavaVirtualMachines', '/opt']) {
    if (!existsSync(folder)) continue;
    for (const name of readdirSync(folder)) homes.push(join(folder, name), join(folder, name, 'Contents', 'Home'));
  }
  return [...new Set(homes)].filter((home) => home !== undefined && existsSync(join(home, 'bin', 'java'))) as string[];
}

/** The major version, 0 where it cannot be told. */
function javaVersion(java: string): number {
  const { stderr } = spawnSync(java, ['-version'], { encoding: 'utf8' });
  return Number(/version "(\d+)/.exec(stderr ?? '')?.[1] ?? 0);
}
