/**
 * Narrowing down a refusal: the sizes of a lane's next requests, in order, until the record that the target refuses
 * stands alone. Empty: requests are as large as the limits let them be. Sizes are whole numbers of at least 1.
 */
export type Plan = readonly number[];

/** The prefix alone first, then the one that was named, then the rest; halves where the index names none of these records. */
export function aroundIndex(count: number, index: number | undefined): Plan {
  if (index === undefined || index >= count) return halves(count);
  return [index, 1, count - index - 1].filter((size) => size > 0);
}

export function halves(count: number): Plan {
  const half = Math.floor(count / 2);
  return [half, count - half].filter((size) => size > 0);
}

/** A request of `count` records was refused, and its records go in these parts instead. */
export function replan(plan: Plan, count: number, parts: Plan): Plan {
  return [...parts, ...without(plan, count)];
}

/** The first `count` records are done with. */
export function without(plan: Plan, count: number): Plan {
  const rest = [...plan];
  let left = count;
  while (left > 0) {
    const front = rest.shift();
    if (front === undefined) break;
    if (front > left) rest.unshift(front - left);
    left -= front;
  }
  return rest;
}
