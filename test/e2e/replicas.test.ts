/**
 * Two replicas behind HAProxy, as deploy/haproxy.cfg has it: conversations keep their replica, one
 * that is drained loses nobody, and one that is killed loses what it was answering at most. What
 * deploy/kubernetes.yaml asks for is there.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseOptions } from "../../src/cli/options.ts";
import { serveCommand } from "../../src/cli/serve.ts";
import { cleanUp, files, noDriver, start, testTimeoutMs, write } from "../helpers/binary.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const folder = join(import.meta.dir, "../../deploy");
const textOf = (name: string) => readFileSync(join(folder, name), "utf8");

const haproxy = Bun.which("haproxy", { PATH: `${process.env["PATH"]}:/usr/sbin` });
const missing =
  noDriver ?? (haproxy === null ? "haproxy is not installed; apt install haproxy" : undefined);
if (missing !== undefined) console.warn(`replicas are not tested: ${missing}`);

type Child = ReturnType<typeof start>;

function freePort(): number {
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  return server.port ?? 0;
}

interface Ending {
  readonly startedMs: number;
  readonly endedMs: number;
  /** Undefined for an answer that is whole. */
  readonly failure: string | undefined;
}

describe.skipIf(missing !== undefined)("two replicas", () => {
  const [port, portA, portB] = [freePort(), freePort(), freePort()];
  const url = `http://127.0.0.1:${port}`;
  const place = { a: `http://127.0.0.1:${portA}`, b: `http://127.0.0.1:${portB}` };
  let [a, b]: [Child, Child] = [startReplica(portA), startReplica(portB)];
  let proxy: Bun.Subprocess;

  function startReplica(at: number): Child {
    return start(["serve", "-d", "llvmpipe", "-c", "512", "--port", String(at), "--quiet"]);
  }

  async function until(condition: () => Promise<boolean>): Promise<void> {
    const end = performance.now() + 120_000;
    while (!(await condition().catch(() => false))) {
      if (performance.now() > end) throw new Error("it does not come");
      await Bun.sleep(100);
    }
  }

  const isReady = (at: string) => async () => (await fetch(`${at}/health`)).status === 200;

  /** Answers that a replica has given. */
  async function countOf(at: string): Promise<number> {
    const text = await (await fetch(`${at}/metrics`)).text();
    const line = /zinc_requests_total\{route="\/v1\/chat\/completions",status="200"\} (\d+)/;
    return Number(line.exec(text)?.[1] ?? 0);
  }

  async function ask(messages: readonly object[], more = {}): Promise<string | undefined> {
    const body = { messages, max_tokens: 8, temperature: 0, ...more };
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      if (response.status !== 200) return `${response.status} ${text}`;
      const isStreamed = "stream" in body;
      if (isStreamed && !text.endsWith("data: [DONE]\n\n")) return `a broken stream: ${text}`;
      return undefined;
    } catch (error) {
      return String(error);
    }
  }

  /** Clients for a while; `act` happens in the middle, from `actedMs` to `doneMs`. */
  async function underLoad(act: () => void | Promise<unknown>) {
    const endings: Ending[] = [];
    let isOver = false;
    const client = async (number: number) => {
      for (let i = 0; !isOver; i++) {
        const startedMs = performance.now();
        const messages = [{ role: "user", content: `Client ${number}, question ${i}` }];
        const failure = await ask(messages, i % 2 === 0 ? { stream: true } : {});
        endings.push({ startedMs, endedMs: performance.now(), failure });
      }
    };
    const clients = Array.from({ length: 6 }, (_unused, i) => client(i));
    await Bun.sleep(2500);
    const actedMs = performance.now();
    await act();
    const doneMs = performance.now();
    await Bun.sleep(5000);
    isOver = true;
    await Promise.all(clients);
    return { endings, actedMs, doneMs };
  }

  beforeAll(async () => {
    const config = textOf("haproxy.cfg")
      .replace("bind :8080", `bind 127.0.0.1:${port}`)
      .replace("127.0.0.1:8081", `127.0.0.1:${portA}`)
      .replace("127.0.0.1:8082", `127.0.0.1:${portB}`)
      .replaceAll("/run/haproxy/admin.sock", join(files, "admin.sock"));
    const path = write("haproxy.cfg", config);
    await Promise.all([until(isReady(place.a)), until(isReady(place.b))]);
    proxy = Bun.spawn([haproxy ?? "", "-db", "-f", path], { stdio: ["ignore", "pipe", "pipe"] });
    // Until the checks have had their say.
    await Bun.sleep(3000);
    await until(isReady(url));
  });

  afterAll(async () => {
    proxy.kill();
    for (const child of [a, b]) child.kill("SIGKILL");
    await proxy.exited;
  });

  test("share the conversations, each of which keeps its own", async () => {
    const counts = async () => [await countOf(place.a), await countOf(place.b)] as const;
    const used = new Set<string>();
    for (let i = 0; i < 6; i++) {
      const before = await counts();
      const messages: object[] = [
        { role: "system", content: "Be brief." },
        { role: "user", content: `Conversation ${i}` },
      ];
      for (let turn = 0; turn < 3; turn++) {
        expect(await ask(messages)).toBeUndefined();
        messages.push({ role: "assistant", content: "Well." }, { role: "user", content: "More" });
      }
      const after = await counts();
      const change = [after[0] - before[0], after[1] - before[1]].join(" ");
      expect(["3 0", "0 3"]).toContain(change);
      used.add(change);
    }
    expect(used.size).toBe(2);
  });

  test("lose nobody when one of them is drained", async () => {
    const { endings } = await underLoad(() => a.kill("SIGTERM"));
    expect(endings.filter(({ failure }) => failure !== undefined)).toEqual([]);
    expect(endings.length).toBeGreaterThan(6);
    expect(await a.exited).toBe(143);
  });

  test("lose no more than what one that is killed was answering", async () => {
    a = startReplica(portA);
    await until(isReady(place.a));
    await Bun.sleep(3000);
    const before = await countOf(place.a);
    const { endings, actedMs, doneMs } = await underLoad(() => {
      b.kill("SIGKILL");
      return b.exited;
    });
    const failed = endings.filter(({ failure }) => failure !== undefined);
    // Whatever began later, or was over by then, is whole.
    expect(failed.filter((one) => one.startedMs > doneMs || one.endedMs < actedMs)).toEqual([]);
    expect(failed.length).toBeLessThanOrEqual(6);
    expect(await countOf(place.a)).toBeGreaterThan(before + 6);
    b = startReplica(portB);
    await until(isReady(place.b));
    expect(await ask([{ role: "user", content: "Are you there?" }])).toBeUndefined();
  });
});

describe("the manifest for Kubernetes", () => {
  interface Manifest {
    readonly kind: string;
    readonly spec: {
      readonly template?: { readonly spec: PodSpec };
    };
  }
  interface PodSpec {
    readonly terminationGracePeriodSeconds: number;
    readonly containers: readonly [Container];
  }
  interface Container {
    readonly args: readonly string[];
    readonly resources: { readonly limits: Readonly<Record<string, unknown>> };
    readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: string[] } } };
    readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string } };
  }

  const manifests = Bun.YAML.parse(textOf("kubernetes.yaml")) as Manifest[];
  const pod = manifests.find(({ kind }) => kind === "Deployment")?.spec.template?.spec;
  const container = pod?.containers[0];

  test("starts zinc with flags that there are", () => {
    const [command, ...args] = container?.args ?? [];
    expect(command).toBe("serve");
    const { values } = parseOptions(args, serveCommand.flags, {});
    expect(values).toMatchObject({ host: "0.0.0.0", model: "/models/model.gguf", port: 8080 });
  });

  test("asks the server how it is, and gives it time to end", () => {
    expect(container?.readinessProbe?.httpGet.path).toBe("/health");
    expect(container?.livenessProbe?.httpGet.path).toBe("/live");
    expect(Object.keys(container?.resources.limits ?? {})).toContain("amd.com/gpu");
    const drain = container?.args.find((arg) => arg.startsWith("--drain-timeout="));
    const [, pause] = container?.lifecycle.preStop.exec.command ?? [];
    const needed = Number(drain?.split("=")[1]) + Number(pause);
    expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(needed);
  });
});
