/** A short soak of the built server; `ZINC_SOAK_MINUTES=2` or more makes it a long one. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { cleanUp, noDriver, testTimeoutMs } from "../helpers/binary.ts";
import { soak } from "../soak.ts";

const minutes = Number(process.env["ZINC_SOAK_MINUTES"] || 0.25);

setDefaultTimeout(testTimeoutMs + minutes * 60_000);
afterAll(cleanUp);

test.skipIf(noDriver !== undefined)(
  "32 clients that chat, cancel, break off and send garbage break nothing",
  async () => {
    const { broken, endings, deviceBytes, rssBytes } = await soak(minutes, 32);
    expect(broken).toEqual([]);
    expect(endings.get("200")).toBeGreaterThan(0);
    expect(endings.get("streamed")).toBeGreaterThan(0);
    expect(deviceBytes[1]).toBe(deviceBytes[0]);
    // A short run still warms up.
    expect(rssBytes[1] / rssBytes[0]).toBeLessThan(minutes < 2 ? 1.5 : 1.1);
  },
);
