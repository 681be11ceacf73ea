/**
 * Turns at something that serves one at a time. Clients take turns, however much each of them asks
 * for; what one client asks for is served in order.
 */

interface Waiter {
  readonly admit: () => void;
}

export class FairQueue {
  #isTaken = false;
  /** Those who wait, by client; the client whose turn is next comes first. */
  readonly #waiting = new Map<string, Waiter[]>();

  get waitingCount(): number {
    let count = 0;
    for (const waiters of this.#waiting.values()) count += waiters.length;
    return count;
  }

  /** Waits for a turn; false if the signal was aborted before it came. */
  async acquire(client: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (!this.#isTaken) {
      this.#isTaken = true;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter = { admit: () => resolve(true) };
    this.#waiting.set(client, [...(this.#waiting.get(client) ?? []), waiter]);
    const leave = () => {
      this.#remove(client, waiter);
      resolve(false);
    };
    signal.addEventListener("abort", leave, { once: true });
    const isAdmitted = await promise;
    signal.removeEventListener("abort", leave);
    return isAdmitted;
  }

  /** Ends the turn that was acquired. */
  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#isTaken = false;
      return;
    }
    const [client, [waiter, ...rest]] = next;
    // Behind the others: who was served comes last.
    this.#waiting.delete(client);
    if (rest.length > 0) this.#waiting.set(client, rest);
    waiter?.admit();
  }

  #remove(client: string, waiter: Waiter): void {
    const rest = (this.#waiting.get(client) ?? []).filter((other) => other !== waiter);
    if (rest.length > 0) this.#waiting.set(client, rest);
    else this.#waiting.delete(client);
  }
}
