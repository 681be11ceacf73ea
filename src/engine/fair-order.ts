/**
 * Whose turn it is. Most turns go to the client that has least; every fourth goes to whoever has
 * waited longest of all, so that nobody waits for ever.
 */
import type { ClientLedger } from "./client-ledger.ts";
import type { TokenStream } from "./token-stream.ts";

const turnsPerOldest = 4;

export class FairOrder {
  readonly #ledger: ClientLedger;
  #admissionCount = 0;
  #quantumCount = 0;

  constructor(ledger: ClientLedger) {
    this.#ledger = ledger;
  }

  /**
   * The stream to let in next: the oldest of the client that has the fewest inside. It stays the
   * same until it was let in, or a client with fewer comes.
   */
  nextWaiting(
    waiting: Iterable<TokenStream>,
    running: Iterable<TokenStream>,
  ): TokenStream | undefined {
    if (this.#admissionCount % turnsPerOldest === 0) return first(waiting, byAge);
    const inside = new Map<string, number>();
    for (const { client } of running) inside.set(client, (inside.get(client) ?? 0) + 1);
    const insideOf = ({ client }: TokenStream) => inside.get(client) ?? 0;
    return first(
      waiting,
      (a, b) => insideOf(a) - insideOf(b) || this.#byService(a, b) || byAge(a, b),
    );
  }

  countAdmission(): void {
    this.#admissionCount++;
  }

  /**
   * The stream that gets the next few rows of prefill: of the client that was served least, the one
   * that will be through soonest.
   */
  nextPrefill(streams: Iterable<TokenStream>): TokenStream | undefined {
    const isOldestTurn = this.#quantumCount++ % turnsPerOldest === 0;
    if (isOldestTurn) return first(streams, byAge);
    return first(
      streams,
      (a, b) => this.#byService(a, b) || a.dueCount - b.dueCount || byAge(a, b),
    );
  }

  #byService(a: TokenStream, b: TokenStream): number {
    return this.#ledger.servedOf(a.client) - this.#ledger.servedOf(b.client);
  }
}

function byAge(a: TokenStream, b: TokenStream): number {
  return a.id - b.id;
}

function first(
  streams: Iterable<TokenStream>,
  compare: (a: TokenStream, b: TokenStream) => number,
): TokenStream | undefined {
  let best: TokenStream | undefined;
  for (const stream of streams) {
    if (best === undefined || compare(stream, best) < 0) best = stream;
  }
  return best;
}
