/**
 * The floors of src as a lint: a room imports only rooms below it, only through their index.ts, and never in a circle.
 * The table is the whole rule; a room that is not in it may not exist.
 */

/** What each room may import of the others. src/errors.ts is open to all, and so is src/notifier.ts, which is not a decision. */
const ROOMS = {
  // floor 1
  ring: [],
  entry: ['ring'],
  credentials: [],
  guard: [],
  provisioning: [],
  // floor 2
  layout: ['ring'],
  dedup: ['ring', 'entry'],
  sender: [],
  // floor 3
  rebatch: ['ring', 'entry', 'layout', 'dedup'],
  convergence: ['ring', 'layout'],
  // floor 4
  ports: ['ring', 'entry', 'layout', 'dedup', 'rebatch', 'convergence', 'provisioning', 'sender', 'credentials'],
  replication: ['ring', 'entry', 'layout', 'dedup', 'rebatch', 'ports'],
};

const below = Object.keys(ROOMS);

// floors 5 and 6
ROOMS.drivers = below;
ROOMS.adapters = below.filter((room) => room !== 'replication');
ROOMS.testing = [...below, 'drivers', 'adapters'];

/** The rooms that decide: no clock, no randomness, no input or output. biome.json forbids them the globals. */
const CORE = ['ring', 'entry', 'layout', 'dedup', 'rebatch', 'convergence', 'replication', 'sender', 'provisioning'];

/** The one file of a room, or of an adapter, that others see. */
const FACE = '^src/(adapters/)?[^/]+/index\\.ts$';

const oneOf = (rooms) => `^src/(${rooms.join('|')})/`;

const floors = Object.entries(ROOMS).map(([room, allowed]) => ({
  name: `floor-of-${room}`,
  comment: `${room} may import ${allowed.join(', ') || 'no other room'}`,
  severity: 'error',
  from: { path: `^src/${room}/` },
  to: { path: '^src/', pathNot: [oneOf([room, ...allowed]), '^src/(errors|notifier)\\.ts$'] },
}));

module.exports = {
  forbidden: [
    ...floors,
    {
      name: 'floor-of-index',
      comment:
        'The main entry point offers values, machines and the types of ports; the rest has entry points of its own.',
      severity: 'error',
      from: { path: '^src/index\\.ts$' },
      to: { path: '^src/', pathNot: [oneOf(below), '^src/errors\\.ts$'] },
    },
    {
      name: 'floor-of-errors',
      comment: 'errors.ts lies under every room.',
      severity: 'error',
      from: { path: '^src/errors\\.ts$' },
      to: {},
    },
    {
      name: 'known-room',
      comment: 'A new room needs a line in the table of .dependency-cruiser.cjs.',
      severity: 'error',
      from: { path: '^src/', pathNot: [oneOf(Object.keys(ROOMS)), '^src/(index|errors)\\.ts$'] },
      to: {},
    },
    {
      name: 'by-the-face',
      comment: 'A room is imported through its index.ts.',
      severity: 'error',
      from: { path: '^src/([^/]+)/' },
      to: { path: '^src/[^/]+/', pathNot: ['^src/$1/', FACE] },
    },
    {
      name: 'index-by-the-face',
      comment: 'The main entry point too takes a room by its index.ts.',
      severity: 'error',
      from: { path: '^src/[^/]+\\.ts$' },
      to: { path: '^src/[^/]+/', pathNot: FACE },
    },
    {
      name: 'adapters-apart',
      comment: 'An adapter stands alone: a host installs one without the others.',
      severity: 'error',
      from: { path: '^src/adapters/([^/]+)/' },
      to: { path: '^src/adapters/', pathNot: '^src/adapters/$1/' },
    },
    {
      name: 'ports-are-types',
      comment: 'ports holds interfaces only, so it imports types only.',
      severity: 'error',
      from: { path: '^src/ports/' },
      to: { pathNot: '^src/ports/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'core-without-node',
      comment: 'The core opens no socket, touches no disk, reads no clock. Only entry uses a part of Node: zlib.',
      severity: 'error',
      from: { path: oneOf(CORE) },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?zlib$' },
    },
    {
      name: 'zlib-in-entry',
      comment: 'Codecs live in entry.',
      severity: 'error',
      from: { path: oneOf(CORE), pathNot: '^src/entry/' },
      to: { path: '^(node:)?zlib$' },
    },
    {
      name: 'packages-at-the-edge',
      comment: 'Only codecs (entry), adapters and testing lean on packages.',
      severity: 'error',
      from: { path: '^src/', pathNot: oneOf(['entry', 'adapters', 'testing']) },
      to: { path: 'node_modules', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-dev-package',
      comment: 'What is published runs on dependencies and peers alone.',
      severity: 'error',
      from: { path: '^src/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['npm-peer', 'type-only'],
      },
    },
    {
      name: 'found',
      comment: 'Every import leads somewhere. A peer need not be installed.',
      severity: 'error',
      from: { path: '^src/' },
      to: { couldNotResolve: true, pathNot: '^zstd-napi$' },
    },
    {
      name: 'no-circle',
      comment: 'Not even of types: a circle hides a concept that wants a file of its own.',
      severity: 'error',
      from: { path: '^src/' },
      to: { circular: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
