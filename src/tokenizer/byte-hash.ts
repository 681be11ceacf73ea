/**
 * FNV-1a over bytes: quick for short strings, and continuable, so that two ranges can be hashed as
 * one.
 */
export const hashSeed = 0x811c9dc5 | 0;

const prime = 0x01000193;

export function hashBytes(seed: number, bytes: Uint8Array, start: number, end: number): number {
  let hash = seed;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ (bytes[i] as number), prime);
  return hash;
}

/** FNV leaves the low bits of short strings poorly mixed; a slot number needs them. */
export function spread(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return mixed ^ (mixed >>> 13);
}

/** A power of two that leaves at least half of the slots of an open-addressing table free. */
export function slotCount(entryCount: number): number {
  let slots = 16;
  while (slots < entryCount * 2) slots *= 2;
  return slots;
}
