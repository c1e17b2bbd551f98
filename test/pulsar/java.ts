/**
 * Java and the jars that the live tests run: finds Java 21 or newer and Maven, and lets Maven bring Pulsar's jars and
 * compile the program under java/ into a cache folder. Done once, and again when pom.xml or the program changes.
 */
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MIN_JAVA = 21;
const HERE = fileURLToPath(new URL('.', import.meta.url));
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/isthmus-pulsar', import.meta.url));

/** What the brokers and the Java clients are started with. */
export interface JavaTools {
  /** The `java` program. */
  readonly java: string;
  /** Pulsar's jars. */
  readonly brokerPath: string;
  /** The same, and the program of this folder. */
  readonly clientPath: string;
  /** Where the classes that a broker loads may lie ready to be used (a CDS archive): it then starts in half the time. */
  readonly brokerArchive: string;
  /** Options that every process needs: access to internals of the JVM, and where the logging's settings are. */
  readonly options: readonly string[];
}

/** The internals that Netty, RocksDB and the load report reach into. */
const OPENED = [
  ...['java.base/java.nio', 'java.base/jdk.internal.misc', 'java.base/java.lang', 'java.base/sun.net'],
  ...['java.base/jdk.internal.platform', 'java.base/sun.nio.ch', 'java.management/sun.management'],
  'jdk.management/com.sun.management.internal',
];

/**
 * Finds Java, and has everything built that is not there yet; a minute or two the first time. Rejects with a statement
 * of what is missing.
 */
export async function javaTools(): Promise<JavaTools> {
  const found = findJava();
  if (found === undefined) {
    throw new Error(
      `Java ${MIN_JAVA} or newer is missing: JAVA_HOME, the path and the usual folders do not have it. ` +
        'Install a JDK, or set PULSAR_A and PULSAR_B to use running clusters.',
    );
  }
  mkdirSync(CACHE, { recursive: true });
  await underLock(join(CACHE, 'lock'), () => build(found.home));
  const options = [
    ...['-Dio.netty.tryReflectionSetAccessible=true', '--enable-native-access=ALL-UNNAMED'],
    `-Dlog4j2.configurationFile=${join(HERE, 'log4j2.xml')}`,
    // The switch that names Unsafe is of Java 23 and newer.
    ...(found.version >= 23 ? ['--sun-misc-unsafe-memory-access=allow'] : []),
    ...OPENED.map((name) => `--add-opens=${name}=ALL-UNNAMED`),
  ];
  const brokerPath = join(CACHE, 'lib', '*');
  return {
    java: join(found.home, 'bin', 'java'),
    brokerPath,
    clientPath: [join(CACHE, 'classes'), brokerPath].join(delimiter),
    brokerArchive: join(CACHE, `broker-${found.version}.jsa`),
    options,
  };
}

/** Lets Maven work when the pom or the program is another than at the last time. */
async function build(javaHome: string): Promise<void> {
  const stampFile = join(CACHE, 'stamp');
  const stamps = [hashOf(['pom.xml']), hashOf(programFiles())] as const;
  const [lastPom, lastProgram] = existsSync(stampFile) ? readFileSync(stampFile, 'utf8').split(' ') : [];
  if (lastPom === stamps[0] && lastProgram === stamps[1]) return;
  rmSync(stampFile, { force: true });
  // What an older pom brought would lie on the class path beside the new. Jars that stay may be in use.
  const old = lastPom === stamps[0] ? ['classes'] : readdirSync(CACHE).filter((name) => name !== 'lock');
  for (const name of old) rmSync(join(CACHE, name), { recursive: true, force: true });
  await runMaven(javaHome);
  writeFileSync(stampFile, stamps.join(' '));
}

function programFiles(): string[] {
  const names = readdirSync(join(HERE, 'java'), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.java')).map((name) => join('java', name));
}

function hashOf(files: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of [...files].sort()) hash.update(`\0${file}\0`).update(readFileSync(join(HERE, file)));
  return hash.digest('hex');
}

function runMaven(javaHome: string): Promise<void> {
  const args = ['-q', '-B', '-f', join(HERE, 'pom.xml'), `-Dout=${CACHE}`, 'compile'];
  return new Promise((resolve, reject) => {
    execFile('mvn', args, { env: { ...process.env, JAVA_HOME: javaHome } }, (error, stdout, stderr) => {
      if (error === null) return resolve();
      if ('code' in error && error.code === 'ENOENT') {
        return reject(new Error('Maven is missing: there is no mvn on the path. It brings the jars of Pulsar.'));
      }
      reject(new Error(`Maven did not build test/pulsar:\n${`${stdout}${stderr}`.trim().slice(-4000)}`));
    });
  });
}

/** Runs alone among the processes that use the same cache. */
async function underLock(file: string, work: () => Promise<void>): Promise<void> {
  while (!takeLock(file)) await sleep(500);
  try {
    await work();
  } finally {
    rmSync(file, { force: true });
  }
}

function takeLock(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    if (!isHeld(file)) rmSync(file, { force: true });
    return false;
  }
}

/** False when the process that took the lock has ended without giving it back. */
function isHeld(file: string): boolean {
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0);
    return true;
  } catch {
    return false;
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
  const homes = [process.env.JAVA_HOME ?? ''];
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const java = join(folder, 'java');
    if (existsSync(java)) homes.push(dirname(dirname(realpathSync(java))));
  }
  const usual = ['/usr/lib/jvm', '/Library/Java/JavaVirtualMachines', '/opt/homebrew/opt', '/usr/local/opt', '/opt'];
  for (const folder of usual) {
    if (!existsSync(folder)) continue;
    for (const name of readdirSync(folder)) homes.push(join(folder, name), join(folder, name, 'Contents', 'Home'));
  }
  // Maven compiles with it: a runtime without a compiler is of no use.
  return [...new Set(homes)].filter((home) => home !== '' && existsSync(join(home, 'bin', 'javac')));
}

/** The major version, 0 where it cannot be told. */
function javaVersion(java: string): number {
  const { stderr } = spawnSync(java, ['-version'], { encoding: 'utf8' });
  return Number(/version "(\d+)/.exec(stderr ?? '')?.[1] ?? 0);
}
