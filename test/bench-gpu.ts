/**
 * Decode speed beside a peer's, each taking its turn on the same device and the same files:
 *
 *     bun run bench:gpu --peer COMMAND MODEL.gguf …
 *
 * COMMAND is asked as `COMMAND bench -m MODEL -n 128 -d 0,4096 -r 5 -p 512` and prints JSON:
 * `{ "decode": [{ "depth", "streams", "tok_s" }], "prefill_tok_s" }`. Without --peer, zinc alone is
 * measured. Prints a table in Markdown, medians of --repeats runs; exit code 1 if one of the two
 * fails.
 */
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import * as v from "valibot";

const decodeSchema = v.object({ depth: v.number(), streams: v.number(), tok_s: v.number() });
const peerSchema = v.object({
  decode: v.array(decodeSchema),
  prefill_tok_s: v.nullable(v.number()),
});
const zincSchema = v.object({
  device: v.object({ name: v.string(), driver: v.string(), readGBs: v.number() }),
  prefill: v.array(v.object({ tokens: v.number(), tokS: v.number() })),
  decode: v.array(
    v.object({
      depth: v.number(),
      tokS: v.number(),
      roofline: v.nullable(v.number()),
      gpuMsPerStep: v.number(),
      hostMsPerStep: v.number(),
      dispatchesPerStep: v.number(),
      barriersPerStep: v.number(),
    }),
  ),
});

const cli = join(import.meta.dir, "..", "src", "cli.ts");
const prefillTokens = 512;

interface Options {
  readonly peer: string | undefined;
  readonly depth: string;
  readonly tokens: string;
  readonly repeats: string;
}

function run(command: readonly string[]): unknown {
  const { exitCode, stdout } = Bun.spawnSync([...command], { stderr: "inherit" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: exit code ${exitCode}`);
  return JSON.parse(stdout.toString());
}

function measure(model: string, { peer, depth, tokens, repeats }: Options): string[] {
  const sizes = ["-p", String(prefillTokens), "-n", tokens, "-r", repeats];
  const zinc = v.parse(
    zincSchema,
    run([process.execPath, cli, "bench", "-m", model, ...sizes, "--depth", depth, "--json"]),
  );
  const other =
    peer === undefined
      ? undefined
      : v.parse(
          peerSchema,
          run(["sh", "-c", `${peer} bench -m "$0" "$@"`, model, ...sizes, "-d", depth]),
        );
  const cell = (ours: number, theirs: number | null | undefined) =>
    theirs ? `${theirs.toFixed(1)} | ${(ours / theirs).toFixed(2)}` : "– | –";
  const name = basename(model, ".gguf");
  const [prefill] = zinc.prefill;
  return [
    ...zinc.decode.map((row) => {
      const theirs = other?.decode.find(
        ({ depth: d, streams }) => d === row.depth && streams === 1,
      );
      const floor = row.roofline === null ? "–" : `${(row.roofline * 100).toFixed(0)} %`;
      return (
        `| ${name} | decode at ${row.depth} | ${row.tokS.toFixed(1)} | ` +
        `${cell(row.tokS, theirs?.tok_s)} | ${floor} | ` +
        `${row.gpuMsPerStep.toFixed(3)} | ${row.hostMsPerStep.toFixed(3)} | ` +
        `${row.dispatchesPerStep} | ${row.barriersPerStep} |`
      );
    }),
    ...(prefill === undefined
      ? []
      : [
          `| ${name} | prefill of ${prefill.tokens} | ${prefill.tokS.toFixed(1)} | ` +
            `${cell(prefill.tokS, other?.prefill_tok_s)} | | | | | |`,
        ]),
  ];
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    peer: { type: "string" },
    depth: { type: "string", default: "0,4096" },
    tokens: { type: "string", default: "128" },
    repeats: { type: "string", default: "5" },
  },
});
console.log(
  "| model | what | zinc tok/s | peer tok/s | ratio | of the floor | GPU ms | host ms " +
    "| dispatches | barriers |",
);
console.log("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
for (const model of positionals) {
  for (const line of measure(model, { ...values, peer: values.peer })) console.log(line);
}
