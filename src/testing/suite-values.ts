/** How acceptance suites compare values that may have gone through JSON. */

/** True for values of the same members, in whatever order; those that are undefined count as absent. */
export function sameValue(a: unknown, b: unknown): boolean {
  return textOfValue(a) === textOfValue(b);
}

/** A value as JSON text, its members in one order. */
export function textOfValue(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member;
    return Object.fromEntries(Object.entries(member).sort(([x], [y]) => (x < y ? -1 : 1)));
  });
}
