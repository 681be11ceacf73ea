/** A value that views can watch. */
import { useLayoutEffect, useState } from "preact/hooks";

export class Value<T> {
  private current: T;
  private readonly watchers = new Set<(value: T) => void>();

  constructor(initial: T) {
    this.current = initial;
  }

  get(): T {
    return this.current;
  }

  set(next: T): void {
    if (Object.is(next, this.current)) return;
    this.current = next;
    for (const watcher of [...this.watchers]) watcher(next);
  }

  update(change: (value: T) => T): void {
    this.set(change(this.current));
  }

  /** Returns how to stop watching. */
  watch(watcher: (value: T) => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

/** The value now; the component is drawn again when it changes. */
export function useValue<T>(value: Value<T>): T {
  const [, redraw] = useState({});
  useLayoutEffect(() => {
    const seen = value.get();
    const stop = value.watch(() => redraw({}));
    if (!Object.is(seen, value.get())) redraw({});
    return stop;
  }, [value]);
  return value.get();
}
