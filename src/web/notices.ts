/** Short messages at the foot of the page, and sentences for screen readers. */
import { Value } from "./value.ts";

export interface Notice {
  readonly id: number;
  readonly text: string;
  readonly action?: { readonly label: string; readonly run: () => void };
}

const shownMs = 8000;

export const notices = new Value<readonly Notice[]>([]);

/** What a screen reader says next. */
export const announcement = new Value("");

let count = 0;

export function notify(text: string, action?: Notice["action"]): void {
  const id = ++count;
  // The same sentence once is enough.
  const others = notices.get().filter((notice) => notice.text !== text);
  notices.set([...others, { id, text, ...(action === undefined ? {} : { action }) }].slice(-3));
  setTimeout(() => dismiss(id), shownMs);
}

export function dismiss(id: number): void {
  notices.update((all) => all.filter((notice) => notice.id !== id));
}
