/** Integer arithmetic on counts and sizes, and the one place where sizes become text. */

/** The smallest integer not below a/b. */
export function ceilDiv(a: number, b: number): number {
  return Math.ceil(a / b);
}

/** The smallest multiple of `step` not below `value`. Safe above 2^31, unlike bit masks. */
export function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}

/** The product of all numbers; 1 for none. */
export function product(values: Iterable<number>): number {
  let result = 1;
  for (const value of values) result *= value;
  return result;
}

/** A size for people: "4.92 GB". Powers of ten, as disks and bandwidths are quoted. */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit]}`;
}

/** The bits of a number as a 32-bit float. */
export function floatBits(value: number): number {
  return new Uint32Array(new Float32Array([value]).buffer)[0] ?? 0;
}
