/** Waits in real time for what happens by itself. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; !(await condition()); i++) {
    if (i > 5000) throw new Error('the condition did not come true');
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
