/** What the page reads from `/metrics`, in Prometheus's text format. */

/** Sums of all series of a name, by name. */
export function readMetrics(text: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [, name, value] = /^([a-zA-Z_:][\w:]*)(?:\{.*\})?\s+(\S+)/.exec(line) ?? [];
    if (name === undefined) continue;
    const number = Number(value);
    if (Number.isFinite(number)) sums.set(name, (sums.get(name) ?? 0) + number);
  }
  return sums;
}

export interface Sample {
  /** Seconds. */
  readonly at: number;
  readonly tokensPerSecond: number;
  readonly memoryBytes: number | undefined;
}

/** What the graphs show: two minutes at one sample each two seconds. */
export const historyLength = 60;

/** Keeps the newest samples. */
export function withSample(history: readonly Sample[], sample: Sample): Sample[] {
  return [...history, sample].slice(-historyLength);
}

/** "3.4 GB"; powers of 1000, as devices are sold. */
export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 9.95 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** "40 ms", "0.8 s", "41 s", "3 min". */
export function formatSeconds(seconds: number): string {
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  return `${Math.round(seconds / 60)} min`;
}

export function formatSpeed(tokensPerSecond: number): string {
  const digits = tokensPerSecond < 99.95 ? 1 : 0;
  return `${tokensPerSecond.toFixed(digits)} tok/s`;
}
