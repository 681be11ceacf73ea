/** What clients were served. */
import { describe, expect, test } from "bun:test";
import { ClientLedger } from "../../src/engine/client-ledger.ts";
import { InvariantError } from "../../src/errors.ts";

describe("the ledger", () => {
  test("starts whoever comes at what those present were served at least", () => {
    const ledger = new ClientLedger();
    ledger.open("a");
    ledger.open("b");
    ledger.charge("a", 100);
    ledger.charge("b", 40);
    ledger.open("c");
    expect(["a", "b", "c"].map((client) => ledger.servedOf(client))).toEqual([100, 40, 40]);
  });

  test("forgives nobody who leaves and comes back soon", () => {
    const ledger = new ClientLedger();
    ledger.open("a");
    ledger.open("b");
    ledger.charge("a", 100);
    ledger.close("a");
    ledger.open("a");
    expect([ledger.servedOf("a"), ledger.servedOf("b")]).toEqual([100, 0]);
  });

  test("forgets who is away and owes nothing, and all when nobody is left", () => {
    const ledger = new ClientLedger();
    ledger.open("a");
    ledger.open("b");
    ledger.charge("a", 10);
    ledger.close("a");
    ledger.charge("b", 50);
    ledger.open("c");
    expect([ledger.clientCount, ledger.servedOf("a")]).toEqual([2, 50]);
    ledger.close("b");
    ledger.close("c");
    expect([ledger.clientCount, ledger.servedOf("b")]).toEqual([0, 0]);
  });

  test("charges nobody who has asked for nothing", () => {
    const ledger = new ClientLedger();
    expect(() => ledger.charge("a", 1)).toThrow(new InvariantError("a has nothing open"));
  });
});
