#!/usr/bin/env bash
# Runs the codec tests with zstd-napi as well. It compiles when it is installed, so it is no dependency: it is built in
# a scratch copy of the project. Where it cannot be built, this says so and succeeds: nothing else depends on it.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -R package.json package-lock.json .npmrc tsconfig.json vitest.config.ts src test "$scratch"
cp -R node_modules "$scratch/node_modules"
cd "$scratch"

version=$(node -p 'require("./package.json").peerDependencies["zstd-napi"].replace("^", "")')
mkdir built
echo '{ "private": true }' >built/package.json
if ! (cd built && npm install --no-audit --no-fund "zstd-napi@$version" && node -e 'import("zstd-napi/binding.js")') \
  >install.log 2>&1; then
  tail -n 5 install.log
  echo "zstd-napi skipped: it could not be built here"
  exit 0
fi
cp -R built/node_modules/zstd-napi node_modules/

# The tests name a provider that is absent as skipped, so what is loaded is asked first, by plain Node.
cat >loaded.mts <<'EOF'
import { defaultCodecs, zstdCodecOf } from './src/index.ts';
const codec = await zstdCodecOf('zstd-napi');
if (codec === undefined) throw new Error('zstd-napi is installed, but was not loaded');
const { zstd } = await defaultCodecs();
console.log(`zstd by ${zstd?.provider}, and by ${codec.provider} when asked for`);
EOF
node --import tsx loaded.mts
npx vitest run test/entry/codecs.test.ts test/entry/batch.test.ts
