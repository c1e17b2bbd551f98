/**
 * Says whether tests on real Pulsar brokers can run here: ends with 0 when they can, with 3 and what is missing when Java
 * or Maven is not there, and with 1 when they are and the jars cannot be had.
 */
import { spawnSync } from 'node:child_process';
import { javaTools } from '../test/pulsar/java.js';

const named = process.env.PULSAR_A !== undefined && process.env.PULSAR_B !== undefined;
const maven = spawnSync('mvn', ['--version'], { stdio: 'ignore' });
if (!named && maven.error !== undefined) {
  console.log('test:pulsar skipped: Maven is missing: `mvn` is not on the path');
  process.exit(3);
}
try {
  await javaTools();
} catch (error) {
  const text = error instanceof Error ? error.message : String(error);
  const isMissing = / is missing/.test(text);
  console.log(`test:pulsar ${isMissing ? 'skipped' : 'cannot run'}: ${text}`);
  process.exit(isMissing ? 3 : 1);
}
