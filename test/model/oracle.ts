/**
 * Compares the tiny models with llama.cpp on the processor, logit by logit, and writes what tests
 * need of its answers:
 *
 *     bun test/model/oracle.ts [--write] [NAME…]
 *
 * Needs ../shared and llama.cpp's library (see ../shared/tools/peer_llama.py), whose folder
 * ZINC_ORACLE names.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeTestGpu } from "../helpers/gpu.ts";
import { feed, loadBytes } from "../helpers/loaded.ts";
import { families, familyTokens } from "./families.ts";
import { digestOf, goldensPath, readGoldens, sampleOf, type Golden } from "./golden.ts";
import { largestDifference } from "./logits.ts";

const root = join(import.meta.dir, "../..");
const script = join(root, "../shared/tools/peer_llama.py");
const library = process.env["ZINC_ORACLE"] ?? "";
if (library === "") throw new Error("ZINC_ORACLE must name the folder of llama.cpp's library");

const folder = mkdtempSync(join(tmpdir(), "zinc-oracle-"));

/** The oracle's logits behind each token. */
function oracleLogits(path: string, tokens: readonly number[]): number[][] {
  const { stdout, stderr, exitCode } = Bun.spawnSync([
    "python3",
    script,
    "--lib",
    library,
    "logits",
    "--cpu",
    "-m",
    path,
    "--all",
    "--tokens",
    tokens.join(),
  ]);
  if (exitCode !== 0) throw new Error(`the oracle failed: ${stderr.toString()}`);
  return JSON.parse(stdout.toString());
}

const names = process.argv.slice(2).filter((name) => !name.startsWith("--"));
const goldens: Record<string, Golden> = { ...readGoldens() };
try {
  for (const [name, build] of Object.entries(families)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const model = build();
    const tokens = familyTokens(model);
    const bytes = model.forge();
    const path = join(folder, "tiny.gguf");
    writeFileSync(path, bytes);
    const expected = oracleLogits(path, tokens);
    goldens[name] = { sha256: digestOf(bytes), ...sampleOf(expected) };
    const engine = await loadBytes(bytes, { contextTokens: 256 });
    const differences = feed(engine, tokens).map((logits, position) =>
      largestDifference(logits, expected[position] ?? []),
    );
    engine.close();
    const worst = Math.max(...differences);
    const at = differences.indexOf(worst);
    console.log(`${name}: ${worst.toExponential(2)} of a deviation, at position ${at}`);
  }
} finally {
  closeTestGpu();
  rmSync(folder, { recursive: true });
}
if (process.argv.includes("--write")) {
  const ordered = Object.keys(families).flatMap((name) => {
    const golden = goldens[name];
    return golden === undefined ? [] : [`  ${JSON.stringify(name)}: ${JSON.stringify(golden)}`];
  });
  writeFileSync(goldensPath, `{\n${ordered.join(",\n")}\n}\n`);
}
