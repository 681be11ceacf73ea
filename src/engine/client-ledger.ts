/**
 * What each client was served, in rows: who was served least comes first (the virtual counters of
 * Sheng et al. 2024). Who comes new or comes back owes nothing and has saved up nothing.
 */
import { invariant } from "../errors.ts";

interface Account {
  served: number;
  /** Texts that are asked for and not complete. */
  openCount: number;
}

export class ClientLedger {
  readonly #accounts = new Map<string, Account>();
  /** Whoever comes starts from what those who are here were served at least. */
  #floor = 0;

  servedOf(client: string): number {
    return this.#accounts.get(client)?.served ?? this.#floor;
  }

  /** Clients that are remembered. */
  get clientCount(): number {
    return this.#accounts.size;
  }

  open(client: string): void {
    const account = this.#accounts.get(client);
    if (account !== undefined && account.openCount > 0) {
      account.openCount++;
      return;
    }
    this.#raiseFloor();
    const served = Math.max(account?.served ?? 0, this.#floor);
    this.#accounts.set(client, { served, openCount: 1 });
  }

  charge(client: string, rowCount: number): void {
    this.#accountOf(client).served += rowCount;
  }

  /** When nobody is left, all is forgotten. */
  close(client: string): void {
    this.#accountOf(client).openCount--;
    if ([...this.#accounts.values()].some(({ openCount }) => openCount > 0)) return;
    this.#accounts.clear();
    this.#floor = 0;
  }

  #accountOf(client: string): Account {
    const account = this.#accounts.get(client);
    if (account === undefined || account.openCount === 0) {
      invariant(false, `${client} has nothing open`);
    }
    return account;
  }

  /** Forgets the absent whom it would raise anyway. */
  #raiseFloor(): void {
    const open = [...this.#accounts.values()].filter(({ openCount }) => openCount > 0);
    if (open.length > 0) this.#floor = Math.min(...open.map(({ served }) => served));
    for (const [client, { served, openCount }] of this.#accounts) {
      if (openCount === 0 && served <= this.#floor) this.#accounts.delete(client);
    }
  }
}
