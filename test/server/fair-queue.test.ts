/** Turns at something that serves one at a time. */
import { describe, expect, test } from "bun:test";
import { FairQueue } from "../../src/server/fair-queue.ts";

const never = new AbortController().signal;

/** The order in which clients are served who all ask at once behind one that is busy. */
async function order(clients: readonly string[]): Promise<string[]> {
  const queue = new FairQueue();
  const served: string[] = [];
  await queue.acquire("busy", never);
  const all = clients.map(async (client) => {
    await queue.acquire(client, never);
    served.push(client);
    queue.release();
  });
  queue.release();
  await Promise.all(all);
  return served;
}

describe("a fair queue", () => {
  test("serves one client in order, and clients in turn", async () => {
    expect(await order(["a1", "a1", "a1"])).toEqual(["a1", "a1", "a1"]);
    expect(await order(["a", "a", "a", "b", "c", "b"])).toEqual(["a", "b", "c", "a", "b", "a"]);
  });

  test("lets somebody leave while waiting, and goes on with the next", async () => {
    const queue = new FairQueue();
    const leaving = new AbortController();
    expect(await queue.acquire("a", never)).toBe(true);
    const second = queue.acquire("b", leaving.signal);
    const third = queue.acquire("c", never);
    expect(queue.waitingCount).toBe(2);
    leaving.abort();
    expect(await second).toBe(false);
    expect(queue.waitingCount).toBe(1);
    queue.release();
    expect(await third).toBe(true);
    queue.release();
    expect(await queue.acquire("d", never)).toBe(true);
  });

  test("gives no turn to whoever has left before", async () => {
    expect(await new FairQueue().acquire("a", AbortSignal.abort())).toBe(false);
  });
});
