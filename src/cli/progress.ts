/** A line on stderr that follows long work; silent where stderr is no terminal. */
import { formatBytes } from "../math.ts";
import { clearLine, isInteractive, writeErr } from "./output.ts";

const redrawMs = 80;
const barWidth = 24;

export class Progress implements Disposable {
  readonly #label: string;
  readonly #started = performance.now();
  #drawn = 0;

  constructor(label: string) {
    this.#label = label;
  }

  /** Shows bytes done of all, with the speed so far. */
  update(doneBytes: number, totalBytes: number): void {
    const now = performance.now();
    if (!isInteractive() || (now - this.#drawn < redrawMs && doneBytes < totalBytes)) return;
    this.#drawn = now;
    const share = totalBytes === 0 ? 1 : doneBytes / totalBytes;
    const full = Math.round(share * barWidth);
    const speed = doneBytes / Math.max((now - this.#started) / 1000, 1e-3);
    this.#draw(
      `${this.#label} ${"█".repeat(full)}${"░".repeat(barWidth - full)} ` +
        `${Math.floor(share * 100)}% of ${formatBytes(totalBytes)}, ${formatBytes(speed)}/s`,
    );
  }

  /** Shows steps done of all. */
  step(done: number, total: number, detail = ""): void {
    if (isInteractive()) this.#draw(`${this.#label} ${done} of ${total} ${detail}`);
  }

  /** Removes the line. */
  clear(): void {
    clearLine();
  }

  [Symbol.dispose](): void {
    this.clear();
  }

  /** A line that wraps could not be removed again. */
  #draw(text: string): void {
    clearLine();
    writeErr(text.slice(0, (process.stderr.columns || 80) - 1));
  }
}
