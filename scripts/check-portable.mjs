/**
 * Fails if a file of the repository is tied to one machine: a registry host in package-lock.json or .npmrc, or an
 * absolute path of somebody's disk in any text file. Such a file works for its author and for nobody else.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { fileURLToPath } from 'node:url';

const LARGEST_TEXT_BYTES = 16 * 1024 * 1024;
const root = fileURLToPath(new URL('..', import.meta.url));

/** Where people and build machines keep their files. What stands before the first slash rules out web addresses. */
const MACHINE_PATH = /(?<![\w.:/$}*-])\/(?:home|Users|root|work|workspace|builds|mnt)\/[\w.-]+|\b[A-Z]:\\{1,2}Users\\/;
const OWN_PATHS = [root.slice(0, -1), homedir()].filter((path) => path.split(/[\\/]/).length > 2);

/** What a file may not hold, by the file. */
const RULES = [
  { file: /(^|\/)package-lock\.json$/, found: (line) => line.includes('"resolved": "http'), what: 'a registry host' },
  {
    file: /(^|\/)\.npmrc$/,
    found: (line) => /registry\s*=|\/\/.*:_/.test(line),
    what: 'a registry or its credentials',
  },
  {
    file: /./,
    found: (line) => MACHINE_PATH.test(line) || OWN_PATHS.some((path) => line.includes(path)),
    what: 'a path of one machine',
  },
];

const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: LARGEST_TEXT_BYTES,
})
  .split('\0')
  .filter((file) => file !== '');

const findings = files.flatMap(findingsIn);
for (const finding of findings) console.error(finding);
console.log(`${files.length} files looked at, ${findings.length} tied to one machine`);
process.exitCode = findings.length === 0 ? 0 : 1;

function findingsIn(file) {
  const path = `${root}${file}`;
  if (!existsSync(path) || !statSync(path).isFile() || statSync(path).size > LARGEST_TEXT_BYTES) return [];
  const bytes = readFileSync(path);
  if (bytes.subarray(0, 8192).includes(0)) return [];
  const rules = RULES.filter((rule) => rule.file.test(file));
  return bytes
    .toString('utf8')
    .split('\n')
    .flatMap((line, i) => rules.filter((rule) => rule.found(line)).map((rule) => `${file}:${i + 1}: ${rule.what}`));
}
