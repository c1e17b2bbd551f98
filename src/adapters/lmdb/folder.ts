/**
 * The folder of a store, before LMDB sees it. lmdb-js crashes the whole process when LMDB refuses a file, so what can
 * be refused is refused here.
 */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { IsthmusError, messageOf, show } from '../../errors.js';

/** At the beginning of LMDB's file, behind the header of its first page; the version of its format follows. */
const MAGIC = Uint8Array.of(0xde, 0xc0, 0xef, 0xbe);
const MAGIC_WITHIN = 64;
const VERSION = 2;
/** The two pages that are always there, of the smallest size that lmdb-js makes. */
const LEAST_BYTES = 2 * 4096;

/** The folder, made if there is none, under the one name that all paths to it share. Throws `invalidArgument`. */
export function preparedFolder(path: string): string {
  let folder: string;
  try {
    mkdirSync(path, { recursive: true });
    folder = realpathSync(path);
    accessSync(folder, constants.R_OK | constants.W_OK);
    for (const file of ['data.mdb', 'lock.mdb'].map((name) => join(folder, name))) {
      if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
    }
    checkFile(join(folder, 'data.mdb'));
  } catch (error) {
    if (error instanceof IsthmusError) throw error;
    // A file where the folder is to be, or rights that this process has not.
    const rule = 'it is to be a folder that can be written';
    throw new IsthmusError('invalidArgument', `store ${show(path)}: ${rule}: ${messageOf(error)}`, { cause: error });
  }
  return folder;
}

/** A file without any content is a new one. */
function checkFile(path: string): void {
  if (!existsSync(path)) return;
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    if (size === 0) return;
    const header = Buffer.alloc(MAGIC_WITHIN + 8);
    readSync(file, header, 0, header.length, 0);
    const magicAt = header.indexOf(MAGIC);
    if (magicAt < 0 || magicAt > MAGIC_WITHIN) refuseFile(path, 'it is not one of LMDB');
    const version = header.readUInt16LE(magicAt + MAGIC.length);
    if (version !== VERSION) refuseFile(path, `it is of LMDB's format ${version}, and ${VERSION} is needed`);
    if (size < LEAST_BYTES) refuseFile(path, `it is cut off after ${size} bytes`);
  } finally {
    closeSync(file);
  }
}

/** LMDB syncs its file; that the file and the folder are found after a power cut is for us to see to. */
export function syncFolder(folder: string): void {
  for (const path of [folder, dirname(folder)]) {
    try {
      const file = openSync(path, 'r');
      try {
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    } catch {
      // Windows has no handle on a folder, and needs none; a parent may not be ours to read.
    }
  }
}

function refuseFile(path: string, rule: string): never {
  throw new IsthmusError('invalidArgument', `file ${show(path)}: ${rule}`);
}
