/**
 * Whether HTTP costs anything: clients that stream answers for a while, beside the engine's own
 * speed with as many texts at once.
 *
 *     bun run bench:http MODEL [clients: 16] [seconds: 60] [device]
 *
 * Prints tokens a second both ways, their ratio, and latencies as the clients see them.
 */
import { cleanUp, ensureBuilt, start, zinc } from "./helpers/binary.ts";
import { percentile } from "./soak.ts";

/** Of one answer. */
const answerTokens = 128;

interface Measured {
  tokens: number;
  readonly firstTokenMs: number[];
  readonly interTokenMs: number[];
}

/** Asks again and again until the time is up; an answer that is begun is completed. */
async function client(url: string, number: number, end: number, into: Measured): Promise<void> {
  for (let i = 0; performance.now() < end; i++) {
    const asked = performance.now();
    const response = await fetch(`${url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        prompt: `Client ${number} asks for the ${i}th time:`,
        max_tokens: answerTokens,
        temperature: 0,
        ignore_eos: true,
        stream: true,
      }),
    });
    if (response.status !== 200 || response.body === null) throw new Error(await response.text());
    let last = 0;
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const count = text.match(/"finish_reason":null/g)?.length ?? 0;
      const now = performance.now();
      if (count === 0) continue;
      if (last === 0) into.firstTokenMs.push(now - asked);
      else for (let j = 0; j < count; j++) into.interTokenMs.push((now - last) / count);
      last = now;
    }
    into.tokens += answerTokens;
  }
}

async function throughHttp(model: string, clients: number, seconds: number, device: string[]) {
  const args = ["serve", "-m", model, "--port", "0", "-c", "2048", "--log-format", "json"];
  const child = start([...args, "--parallel", String(clients), ...device]);
  try {
    const decoder = new TextDecoder();
    let said = "";
    void (async () => {
      for await (const chunk of child.stderr) {
        if (said.length < 10_000) said += decoder.decode(chunk, { stream: true });
      }
    })();
    let url: string | undefined;
    for (;;) {
      url = /listening on (http:\S+?)\/?\n/.exec(said)?.[1];
      if (url !== undefined && (await fetch(`${url}/health`)).status === 200) break;
      if (child.exitCode !== null) throw new Error(said);
      await Bun.sleep(50);
    }
    const measure = async (forMs: number) => {
      const measured: Measured = { tokens: 0, firstTokenMs: [], interTokenMs: [] };
      const started = performance.now();
      const all = Array.from({ length: clients }, (_unused, i) =>
        client(url, i, started + forMs, measured),
      );
      await Promise.all(all);
      return { ...measured, seconds: (performance.now() - started) / 1000 };
    };
    // Programs are recorded when they are first needed.
    await measure(1);
    return await measure(seconds * 1000);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
}

async function ownSpeed(model: string, clients: number, device: string[]): Promise<number> {
  const shape = ["-p", "16", "-n", String(answerTokens), "--streams", String(clients)];
  const { code, out, err } = await zinc(["bench", "-m", model, ...shape, "--json", ...device]);
  if (code !== 0) throw new Error(err);
  const { decode } = JSON.parse(out) as { decode: { tokS: number }[] };
  return decode[0]?.tokS ?? Number.NaN;
}

if (import.meta.main) {
  const [model, clients = "16", seconds = "60", device] = process.argv.slice(2);
  if (model === undefined) throw new Error("bun run bench:http MODEL [clients] [seconds]");
  ensureBuilt();
  const where = device === undefined ? [] : ["-d", device];
  const http = await throughHttp(model, Number(clients), Number(seconds), where);
  const own = await ownSpeed(model, Number(clients), where);
  const speed = http.tokens / http.seconds;
  const at = (values: readonly number[]) =>
    [0.5, 0.99].map((share) => `${percentile(values, share).toFixed(1)} ms`).join(" and ");
  console.log(`${clients} clients over HTTP: ${speed.toFixed(1)} tok/s`);
  console.log(`the engine alone: ${own.toFixed(1)} tok/s; ${((100 * speed) / own).toFixed(0)} %`);
  console.log(`first token, p50 and p99: ${at(http.firstTokenMs)}`);
  console.log(`token to token, p50 and p99: ${at(http.interTokenMs)}`);
  cleanUp();
}
