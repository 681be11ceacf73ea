/** `zinc bench --tune`: layouts of kernels are raced, listed and kept. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  cleanUp,
  files,
  json,
  noDriver,
  refusal,
  testTimeoutMs,
  write,
} from "../helpers/binary.ts";
import { text } from "../helpers/gguf-forge.ts";
import { tinyLlama } from "../helpers/tiny-llama.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const pairs = { "tokenizer.ggml.model": text("none") };
const shape = { layers: 1, width: 64, heads: 4, kvHeads: 4, headWidth: 16, feedForward: 96 };
const { bytes } = tinyLlama({ ...shape, vocabulary: 128, dtype: "Q8_0", pairs });

const layout = {
  ...{ lanes: expect.any(Number), rows: expect.any(Number), columns: 1 },
  ...{ subgroups: expect.any(Number), passes: expect.any(Number), split: expect.any(Number) },
};

describe.skipIf(noDriver !== undefined)("bench --tune", () => {
  test("lists every shape with what was chosen, and keeps that", async () => {
    const path = write("tiny.gguf", bytes);
    const env = { XDG_CACHE_HOME: join(files, "cache") };
    const args = ["bench", "--tune", "-m", path, "-p", "4", "-n", "2", "-r", "1", "--json"];
    interface Report {
      readonly tuning: readonly { shape: string; chosen: object; speedup: number }[];
    }
    const report = await json<Report>(args, { env });
    expect(report.tuning.map((row) => row.shape).toSorted()).toEqual([
      "linear Q8_0 128x64, of normed float, to float",
      "linear Q8_0 64x64, of float, to float",
      "linear Q8_0 64x64, of normed float, to float",
      "linear Q8_0 64x96, of float, to float",
      "linear Q8_0 96x64 gated by silu, of normed float, to float",
    ]);
    for (const row of report.tuning) {
      expect(row).toMatchObject({ default: layout, chosen: layout });
      expect(row.speedup).toBeGreaterThanOrEqual(1);
    }
    const kept = join(files, "cache/zinc");
    const [name = ""] = readdirSync(kept).filter((file) => file.startsWith("tunings-"));
    const content: unknown = JSON.parse(readFileSync(join(kept, name), "utf8"));
    expect(content).toMatchObject({
      tunings: Object.fromEntries(report.tuning.map((row) => [row.shape, row.chosen])),
    });
    const later = args.filter((arg) => arg !== "--tune");
    expect(await json<object>(later, { env })).not.toHaveProperty("tuning");
  });

  test("refuses to tune what shall be deterministic", async () => {
    expect(await refusal(2, ["bench", "--tune", "--deterministic"])).toBe(
      "--tune and --deterministic exclude each other; deterministic results need untuned kernels",
    );
  });
});
