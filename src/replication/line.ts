/** A line in which keys wait: first come, first served, a key once, and everybody may leave from anywhere at no cost. */

interface Place<T> {
  readonly key: string;
  readonly item: T;
  before: Place<T> | undefined;
  behind: Place<T> | undefined;
}

/** Keys with what they wait for. A Map alone has an order too, but finds its first key by walking over the holes. */
export class Line<T> {
  private readonly places = new Map<string, Place<T>>();
  private head: Place<T> | undefined;
  private tail: Place<T> | undefined;

  get size(): number {
    return this.places.size;
  }

  /** Who is served next. */
  get first(): { readonly key: string; readonly item: T } | undefined {
    return this.head;
  }

  get(key: string): T | undefined {
    return this.places.get(key)?.item;
  }

  /** Puts a key that is not in line at the end. */
  append(key: string, item: T): void {
    const place: Place<T> = { key, item, before: this.tail, behind: undefined };
    if (this.tail === undefined) this.head = place;
    else this.tail.behind = place;
    this.tail = place;
    this.places.set(key, place);
  }

  /** Takes a key out, wherever it stands; undefined when it is not in line. */
  leave(key: string): T | undefined {
    const place = this.places.get(key);
    if (place === undefined) return undefined;
    const { before, behind } = place;
    if (before === undefined) this.head = behind;
    else before.behind = behind;
    if (behind === undefined) this.tail = before;
    else behind.before = before;
    this.places.delete(key);
    return place.item;
  }
}
