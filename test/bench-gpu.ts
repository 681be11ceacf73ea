/**
 * Speed beside a peer's, each taking its turn on the same device and the same files:
 *
 *     bun run bench:gpu --peer COMMAND [--prefill 512,4096] [--streams 4,8,16] MODEL.gguf …
 *
 * COMMAND is asked as `COMMAND bench -m MODEL -n 128 -d 0,4096 -r 5 -p 512`, or with
 * `--streams 4,8`, and prints JSON: `{ "decode": [{ "depth", "streams", "tok_s" }],
 * "prefill_tok_s" }`. Without --peer, zinc alone is measured. Prints a table in Markdown, medians
 * of --repeats runs; exit code 1 if one of the two fails.
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
      streams: v.number(),
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

interface Options {
  readonly peer: string | undefined;
  readonly depth: string;
  readonly prefill: string;
  /** Texts at once, beside the one of every measurement. */
  readonly streams: string;
  readonly tokens: string;
  readonly repeats: string;
}

function run(command: readonly string[]): unknown {
  const { exitCode, stdout } = Bun.spawnSync([...command], { stderr: "inherit" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: exit code ${exitCode}`);
  return JSON.parse(stdout.toString());
}

type Zinc = v.InferOutput<typeof zincSchema>;
type Peer = v.InferOutput<typeof peerSchema>;

const bench = (model: string, flags: readonly string[]): Zinc =>
  v.parse(zincSchema, run([process.execPath, cli, "bench", "-m", model, ...flags, "--json"]));

function benchPeer(
  peer: string | undefined,
  model: string,
  flags: readonly string[],
): Peer | undefined {
  if (peer === undefined) return undefined;
  return v.parse(peerSchema, run(["sh", "-c", `${peer} bench -m "$0" "$@"`, model, ...flags]));
}

function measure(model: string, options: Options): string[] {
  const { peer, depth, prefill, streams, tokens, repeats } = options;
  const steps = ["-n", tokens, "-r", repeats];
  const [first = "512", ...others] = prefill.split(",");
  const zinc = bench(model, [...steps, "-p", prefill, "--depth", depth]);
  const theirs = benchPeer(peer, model, [...steps, "-p", first, "-d", depth]);
  const prefills = new Map([[first, theirs?.prefill_tok_s]]);
  for (const length of others) {
    const few = ["-n", "2", "-r", repeats, "-p", length, "-d", "0"];
    prefills.set(length, benchPeer(peer, model, few)?.prefill_tok_s);
  }
  const lines = decodeLines(model, zinc, theirs);
  for (const row of zinc.prefill) {
    const cells = compare(row.tokS, prefills.get(String(row.tokens)));
    lines.push(`| ${nameOf(model)} | prefill of ${row.tokens} | ${cells} | | | | | |`);
  }
  if (streams !== "") {
    const several = [...steps, "-p", "1", "--streams", streams];
    lines.push(...decodeLines(model, bench(model, several), benchPeer(peer, model, several)));
  }
  return lines;
}

function decodeLines(model: string, zinc: Zinc, peer: Peer | undefined): string[] {
  return zinc.decode.map((row) => {
    const theirs = peer?.decode.find(
      ({ depth, streams }) => depth === row.depth && streams === row.streams,
    );
    const floor = row.roofline === null ? "–" : `${(row.roofline * 100).toFixed(0)} %`;
    const what = row.streams === 1 ? `at ${row.depth}` : `of ${row.streams} texts`;
    return (
      `| ${nameOf(model)} | decode ${what} | ${compare(row.tokS, theirs?.tok_s)} | ${floor} | ` +
      `${row.gpuMsPerStep.toFixed(3)} | ${row.hostMsPerStep.toFixed(3)} | ` +
      `${row.dispatchesPerStep} | ${row.barriersPerStep} |`
    );
  });
}

function nameOf(model: string): string {
  return basename(model, ".gguf");
}

function compare(ours: number, theirs: number | null | undefined): string {
  const other = theirs ? `${theirs.toFixed(1)} | ${(ours / theirs).toFixed(2)}` : "– | –";
  return `${ours.toFixed(1)} | ${other}`;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    peer: { type: "string" },
    depth: { type: "string", default: "0,4096" },
    prefill: { type: "string", default: "512" },
    streams: { type: "string", default: "" },
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
