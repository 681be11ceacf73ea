/** A turn of the event loop: waiting for the GPU blocks it, and signals and timers want theirs. */

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
