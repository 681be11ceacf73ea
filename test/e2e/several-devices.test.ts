/**
 * The built executable with a model spread over devices: Mesa's software driver, named twice, is
 * two of them.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  answer,
  cleanUp,
  json,
  noDriver,
  refusal,
  start,
  testTimeoutMs,
  write,
  zinc,
} from "../helpers/binary.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const skipped = describe.skipIf(noDriver !== undefined);
const two = ["--devices", "0,0"];
const greeting = "Hello! How can I help you today?";

/** What a command prints on one device, and on several. */
async function both(args: readonly string[], stdin = "", places = two): Promise<[string, string]> {
  const one = await answer([...args, "-d", "0"], { stdin });
  return [one, await answer([...args, ...places], { stdin })];
}

skipped("on several devices as on one", () => {
  test("run makes the same text", async () => {
    const args = ["run", "--temp", "0", "--prompt", "Hello", "-n", "20", "-q"];
    const outs = await both(args, "", ["--devices", "0,0,0"]);
    expect(outs).toEqual([`${greeting}\n`, `${greeting}\n`]);
  });

  test("chat makes the same conversation", async () => {
    const messages = "Hello\nWhat is the capital of France?\n";
    const [one, several] = await both(["chat", "--temp", "0", "-n", "12", "-q"], messages);
    expect(one).toStartWith(greeting);
    expect(several).toBe(one);
  });

  test("logits are the same to the last digit", async () => {
    const [one, several] = await both(["logits", "--tokens", "300,301,302", "--all"]);
    expect(one.length).toBeGreaterThan(1000);
    expect(several).toBe(one);
  });

  test("perplexity is the same to the last digit", async () => {
    const file = write("text.txt", "The quick brown fox jumps over the lazy dog. ".repeat(20));
    const [one, several] = await both([
      "perplexity",
      "-f",
      file,
      "--ctx",
      "64",
      "--chunks",
      "2",
      "--json",
    ]);
    expect(several).toBe(one);
  });
});

skipped("what it says of several devices", () => {
  test("a run names the layers of each, and warns once", async () => {
    const { err } = await zinc(["run", "--prompt", "Hello", "-n", "2", ...two]);
    const place = "llvmpipe [^)]+\\) \\([\\d.]+ MB\\)";
    expect(err).toMatch(
      new RegExp(
        `^Spark Llama on 2 devices: layers? [\\d–]+ on ${place}, layers? [\\d–]+ on `,
        "m",
      ),
    );
    expect(err.match(/running on the processor/g)).toHaveLength(1);
  });

  test("bench counts a submission for each, and one alone", async () => {
    const args = ["bench", "--json", "-q", "-p", "8", "-n", "4", "-r", "1", "--streams", "1,3"];
    const submits = async (place: readonly string[]) => {
      const report = await json<{ decode: { submitsPerStep: number }[] }>([...args, ...place]);
      return report.decode.map(({ submitsPerStep }) => submitsPerStep);
    };
    expect(await submits(["-d", "0"])).toEqual([1, 1]);
    expect(await submits(two)).toEqual([2, 2]);
  });

  test("--check tells what each would get", async () => {
    interface Report {
      readonly checks: readonly { name: string; status: string; detail: string }[];
      readonly model: { stages: { layers: { first: number; end: number } }[] };
    }
    const report = await json<Report>(["--check", "--json", ...two]);
    const stages = report.model.stages.map(({ layers }) => layers);
    expect(stages).toEqual([
      { first: 0, end: stages[1]?.first ?? -1 },
      { first: stages[0]?.end ?? -1, end: 8 },
    ]);
    const rows = report.checks.filter(({ name }) => /^layers? /.test(name));
    expect(rows.map(({ status }) => status)).toEqual(["ok", "ok"]);
    expect(rows[0]?.detail).toMatch(
      /^on llvmpipe .+: .+ MB of weights, .+ MB of cache, .+ MB of activations; .+ that are free$/,
    );
    // What is named twice is looked at once.
    expect(report.checks.filter(({ name }) => name === "kernels")).toHaveLength(1);
  });
});

skipped("memory", () => {
  test("that one device lacks, two have", async () => {
    const args = ["run", "--temp", "0", "--prompt", "Hello", "-n", "20", "-q"];
    const small = ["--device-memory", "22MB"];
    expect(await refusal(5, [...args, "-d", "0", ...small])).toMatch(
      /^Spark Llama needs .+ and llvmpipe .+ has 22\.0 MB free; take a smaller model /,
    );
    expect(await answer([...args, ...two, ...small])).toBe(`${greeting}\n`);
  });

  test.each([
    [
      "20MB,1MB",
      /^the smallest part of Spark Llama for llvmpipe .+ \(2 of 2\) needs .+, and it has 1\.00 MB /,
    ],
    ["1MB", /^the smallest part of Spark Llama for llvmpipe .+ \(1 of 2\) needs .+ leave it out/],
  ])("%s is too little for a device, which is named", async (memory, pattern) => {
    const args = ["run", "-p", "Hello", ...two, "--device-memory", memory];
    expect(await refusal(5, args)).toMatch(pattern);
  });
});

skipped.each([
  [["--devices", "0,9"], 4, /^no device matches 9 of --devices 0,9; there are: 0 llvmpipe /],
  [
    ["--devices", "0,"],
    2,
    /^--devices 0,: must be names with commas between; see zinc run --help$/,
  ],
  [["-d", "0", "--devices", "0,0"], 2, /^--device and --devices exclude each other; give one of /],
  [
    ["--devices", "0,0,0,0,0,0,0,0,0"],
    2,
    /^Spark Llama can be cut into 8 parts and 9 devices are named; name fewer with --devices$/,
  ],
  [[...two, "--device-memory", "lots"], 2, /^--device-memory lots: must be sizes like 24GB or 500/],
  [
    [...two, "--device-memory", "1GB,1GB,1GB"],
    2,
    /^the memory of 3 devices is given and there are 2; give one size for all, or one for each$/,
  ],
] as const)("zinc run %p", (args, code, pattern) => {
  test(`ends with code ${code} and says why`, async () => {
    expect(await refusal(code, ["run", "--prompt", "Hello", ...args])).toMatch(pattern);
  });
});

skipped("a server over two devices", () => {
  const ask = async (url: string, content: string) => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "m",
        temperature: 0,
        max_tokens: 20,
        messages: [{ role: "user", content }],
      }),
    });
    const body = (await response.json()) as { choices?: { message: { content: string } }[] };
    return body.choices?.[0]?.message.content ?? `status ${response.status}`;
  };
  const isReady = (url: string) =>
    fetch(`${url}/health`).then(
      ({ status }) => status === 200,
      () => false,
    );

  test("answers many at once, and again when a device was lost", async () => {
    const args = ["serve", ...two, "-c", "512", "--port", "0"];
    const child = start(args, { env: { ZINC_TEST_HOOKS: "1" } });
    const decoder = new TextDecoder();
    let said = "";
    void (async () => {
      for await (const chunk of child.stderr) said += decoder.decode(chunk, { stream: true });
    })();
    const found = () => /listening on (http:\S+)\/\n/.exec(said)?.[1] ?? "";
    while (!(await isReady(found()))) await Bun.sleep(50);
    const url = found();
    expect(said).toMatch(/Spark Llama on llvmpipe .+ \+ llvmpipe .+: [\d.]+ MB on the device/);
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask(url, "Hello")));
    expect(answers).toEqual(Array(6).fill(greeting));
    await fetch(`${url}/test/calamity`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ kind: "device-lost" }),
    });
    while (await isReady(url)) await Bun.sleep(10);
    while (!(await isReady(url))) await Bun.sleep(50);
    expect(await ask(url, "Hello")).toBe(greeting);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(143);
  });
});
