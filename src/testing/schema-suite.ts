/**
 * Acceptance suite for `SchemaTranslator`: the same tests that the adapters here pass. It is given the test function of
 * the runner, `it` or `test`, and a `setup` that makes a fresh topic on two clusters for each test. Each message of a
 * failure is the rule that is broken.
 */
import type { SchemaTranslation, SchemaTranslator } from '../ports/index.js';
import { check, onFresh, type RegisterTest, type SuiteSetup } from './suite.js';

/** A schema of the source. */
export interface SourceSchema {
  /** As entries of the source carry it. */
  readonly version: Uint8Array;
  /** What tells it from every other, on either cluster. */
  readonly content: string;
}

/** A topic on two clusters, with no schema on the source; the numbers of the destination are others than its own. */
export interface SchemaTranslatorSetup extends SuiteSetup {
  readonly translator: SchemaTranslator;
  /** Gives the source one more schema, which the destination takes, beside those that came before. */
  addSchema(): Promise<SourceSchema> | SourceSchema;
  /** Gives the source a schema that the destination refuses; asked for alone. */
  addMisfit(): Promise<Uint8Array> | Uint8Array;
  /** The content of a schema of the destination; undefined where it has no such version. */
  stored(version: Uint8Array): Promise<string | undefined> | string | undefined;
  /** How many schemas the destination has. */
  count(): Promise<number> | number;
  /** Takes the destination down, or up again. */
  setReachable(isReachable: boolean): Promise<void> | void;
}

/** Makes a fresh topic on two clusters for one test. */
export type SchemaTranslatorFactory = () => Promise<SchemaTranslatorSetup> | SchemaTranslatorSetup;

/** A version that no source has given yet. */
const UNKNOWN_VERSION = Uint8Array.of(0, 0, 0, 0, 0, 0, 3, 0xe7);

/** Registers the tests of `SchemaTranslator`. */
export function testSchemaTranslator(setup: SchemaTranslatorFactory, test: RegisterTest): void {
  const using = onFresh(setup);
  const name = (what: string) => `SchemaTranslator: ${what}`;

  test(
    name('each version is translated to that of the same schema, in whatever order they come'),
    using(async ({ translator, addSchema, stored }) => {
      const schemas = [await addSchema(), await addSchema(), await addSchema()];
      for (const { version, content } of [...schemas].reverse()) {
        const there = await stored(translated(await translate(translator, version)));
        check(there === content, 'a version is translated to that of another schema, or of none');
      }
    }),
  );

  test(
    name('a schema that is asked for more than once keeps its version, and is registered once'),
    using(async ({ translator, addSchema, count }) => {
      const { version } = await addSchema();
      const before = await count();
      const asked = await Promise.all([1, 2, 3].map(() => translate(translator, version.slice())));
      asked.push(await translate(translator, version));
      const versions = new Set(asked.map((answer) => String(translated(answer))));
      check(versions.size === 1, `one schema has ${versions.size} versions on the destination`);
      const made = (await count()) - before;
      check(made <= 1, `one schema is registered ${made} times`);
    }),
  );

  test(
    name('what the destination refuses is incompatible, for a reason, and is not registered'),
    using(async ({ translator, addMisfit, count }) => {
      const version = await addMisfit();
      const before = await count();
      for (let times = 0; times < 2; times++) {
        const answer = await translate(translator, version);
        check(answer.type === 'incompatible', `a schema that the destination refuses is ${answer.type}`);
        check(answer.reason !== '', 'a schema is refused for no reason');
      }
      check((await count()) === before, 'a schema that was refused is registered');
    }),
  );

  test(
    name('a version that the source does not have is not translated'),
    using(async ({ translator, addSchema, count }) => {
      await addSchema();
      const before = await count();
      const { type } = await translate(translator, UNKNOWN_VERSION);
      check(type !== 'translated', 'a version that the source does not have is translated');
      check((await count()) === before, 'a version that the source does not have is registered');
    }),
  );

  test(
    name('while the destination does not answer a version is unknown, and it is asked for again'),
    using(async ({ translator, addSchema, stored, setReachable }) => {
      const { version, content } = await addSchema();
      await setReachable(false);
      const { type } = await translate(translator, version);
      check(type === 'unknown', `a version is ${type} while the destination does not answer`);
      await setReachable(true);
      const again = await translate(translator, version);
      check(again.type === 'translated', `a version is ${again.type} once the destination answers again`);
      check((await stored(again.version)) === content, 'a version is that of another schema after an outage');
    }),
  );
}

async function translate(translator: SchemaTranslator, version: Uint8Array): Promise<SchemaTranslation> {
  try {
    return await translator.translate(version);
  } catch (error) {
    throw new Error(`a translation rejects: what is not known is a value (${String(error)})`);
  }
}

function translated(answer: SchemaTranslation): Uint8Array {
  if (answer.type === 'translated') return answer.version;
  throw new Error(`a version that can be translated is ${answer.type}: ${answer.reason}`);
}
