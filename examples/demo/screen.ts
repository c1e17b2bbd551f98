/** The demo's screen: one line that moves while work goes on, and a table at the end. */

export class Progress {
  private lastShown = 0;
  private lastPhase = '';

  /** Says what is being done, on a line of its own. */
  say(what: string): void {
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${what} ...`);
    else console.log(`${what} ...`);
  }

  /** Shows the state of a phase; on a terminal several times a second, else once for each phase. */
  show(what: string, share: number | undefined, verbatim: number, rebatched: number): void {
    const now = performance.now();
    if (process.stdout.isTTY ? now - this.lastShown < 100 : what === this.lastPhase) return;
    this.lastShown = now;
    this.lastPhase = what;
    const percent = share === undefined ? '' : ` ${String(Math.round(share * 100)).padStart(3)} %`;
    this.say(`${what}:${percent} ${verbatim} entries verbatim, ${rebatched} re-batched`);
  }

  end(): void {
    if (process.stdout.isTTY) process.stdout.write('\r\x1b[K');
  }
}

/** Prints rows under a head, numbers to the right. */
export function printTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const lines = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  for (const line of lines) {
    console.log(
      line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
    );
  }
}
