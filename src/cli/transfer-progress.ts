/**
 * How far a download is: a bar with speed and time left on a terminal, a line now and then
 * elsewhere.
 */
import { formatBytes } from "../math.ts";
import { clearLine, isInteractive, note, warn, writeErr } from "./output.ts";

const redrawMs = 100;
const plainLineMs = 5000;
/** Speed is the mean over this time: steady, and soon right again after a pause. */
const windowMs = 8000;
const barWidth = 24;
/** Lost connections come in swarms. */
const warnMs = 5000;

export class TransferProgress implements Disposable {
  label = "";
  #phase = "";
  #drawnAt = 0;
  #warnedAt = Number.NEGATIVE_INFINITY;
  /** Times and bytes done, the oldest first. */
  #samples: { readonly atMs: number; readonly doneBytes: number }[] = [];

  update(phase: string, doneBytes: number, totalBytes: number): void {
    const now = performance.now();
    if (phase !== this.#phase) {
      this.#phase = phase;
      this.#samples = [];
      // The first plain line comes when there is a speed to tell.
      this.#drawnAt = isInteractive() ? 0 : now;
    }
    this.#sample(now, doneBytes);
    const isLast = doneBytes === totalBytes && isInteractive();
    if (now - this.#drawnAt < (isInteractive() ? redrawMs : plainLineMs) && !isLast) return;
    this.#drawnAt = now;
    const text = this.#describe(doneBytes, totalBytes);
    if (isInteractive()) draw(text, doneBytes / Math.max(totalBytes, 1));
    else note(text);
  }

  /** A connection waits before it tries again. */
  pause(reason: string, pauseMs: number): void {
    const now = performance.now();
    if (now - this.#warnedAt < warnMs) return;
    this.#warnedAt = now;
    clearLine();
    warn(`${reason}; trying again in ${Math.ceil(pauseMs / 1000)} s`);
  }

  [Symbol.dispose](): void {
    if (this.#samples.length > 0) clearLine();
  }

  #sample(atMs: number, doneBytes: number): void {
    // A stream that begins anew goes back.
    if (doneBytes < (this.#samples.at(-1)?.doneBytes ?? 0)) this.#samples = [];
    this.#samples.push({ atMs, doneBytes });
    while (this.#samples.length > 2 && atMs - (this.#samples[0]?.atMs ?? 0) > windowMs) {
      this.#samples.shift();
    }
  }

  #describe(doneBytes: number, totalBytes: number): string {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    const seconds = ((last?.atMs ?? 0) - (first?.atMs ?? 0)) / 1000;
    const speed = seconds > 0 ? (doneBytes - (first?.doneBytes ?? 0)) / seconds : 0;
    const of = totalBytes > 0 ? ` of ${formatBytes(totalBytes)}` : "";
    const share = totalBytes > 0 ? `${Math.floor((doneBytes / totalBytes) * 100)}%` : "";
    const pace = speed > 0 ? `, ${formatBytes(speed)}/s` : "";
    const isOpen = speed > 0 && doneBytes < totalBytes;
    const left = isOpen ? `, ${duration((totalBytes - doneBytes) / speed)}` : "";
    const done = share === "" ? formatBytes(doneBytes) : share;
    const parts = [this.#phase, this.label, `${done}${of}${pace}${left}`];
    return parts.filter((part) => part !== "").join(" ");
  }
}

/** A line that wraps could not be removed again. */
function draw(text: string, share: number): void {
  const full = Math.round(Math.min(share, 1) * barWidth);
  const bar = "█".repeat(full) + "░".repeat(barWidth - full);
  clearLine();
  writeErr(`${bar} ${text}`.slice(0, (process.stderr.columns || 80) - 1));
}

/** "42 s left", "3 min left", "1 h 20 min left". */
function duration(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s left`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 60) return `${minutes} min left`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}
