/** A headless Chromium of this machine, driven by playwright-core, which brings none. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const USUAL = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Without a sandbox, since in a container the tests may run as root; without what calls home. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Throws, with what to do, where there is none. */
export async function launchChromium(): Promise<Browser> {
  const { CHROMIUM } = process.env;
  const executablePath = (CHROMIUM === undefined ? USUAL : [CHROMIUM]).find((path) => existsSync(path));
  if (executablePath === undefined) {
    throw new Error(
      `no Chromium at ${CHROMIUM ?? USUAL.join(', ')}: install one (Debian: apt-get install chromium), or set CHROMIUM to its path`,
    );
  }
  return chromium.launch({ executablePath, headless: true, args: ARGUMENTS });
}
