/**
 * Watches the server: whether it is ready, which models it has, how fast it is. Nothing waits for
 * it, so that what was said stays readable while the server is away.
 */
import { getJson, getText, loadModel } from "./api.ts";
import { isRecord } from "./archive.ts";
import { readMetrics, withSample, type Sample } from "./metrics.ts";
import { notify } from "./notices.ts";
import { change, samplingParameters, settings, type Sampling } from "./settings.ts";
import { Value } from "./value.ts";

export type ServerState = "unknown" | "ready" | "loading" | "busy" | "unreachable" | "locked";

export interface Server {
  readonly state: ServerState;
  /** Of a model that is being loaded, 0 to 1, where the server tells. */
  readonly progress?: number;
}

export interface Model {
  readonly id: string;
  readonly architecture?: string;
  readonly contextTokens?: number;
  readonly isLoaded?: boolean;
}

export interface Properties {
  /** What is done where a request says nothing. */
  readonly sampling: Sampling;
  readonly contextTokens?: number;
  readonly device?: string;
}

const calmIntervalMs = 5000;
const waitingIntervalMs = 1000;
const metricsIntervalMs = 2000;
/** A model that is loaded already is not worth a look. */
const noticedMs = 150;

export class Monitor {
  readonly server = new Value<Server>({ state: "unknown" });
  readonly models = new Value<readonly Model[]>([]);
  readonly properties = new Value<Properties>({ sampling: {} });
  readonly history = new Value<readonly Sample[]>([]);
  private lastCount: { readonly at: number; readonly tokens: number } | undefined;
  private isLooking = false;

  /** Looks now, and goes on looking as long as the page is seen. */
  start(wantsMetrics: () => boolean): void {
    const look = async () => {
      if (!document.hidden) await this.look();
      const isCalm = ["ready", "locked"].includes(this.server.get().state);
      setTimeout(look, isCalm ? calmIntervalMs : waitingIntervalMs);
    };
    const measure = async () => {
      if (!document.hidden && wantsMetrics()) await this.measure();
      setTimeout(measure, metricsIntervalMs);
    };
    void look();
    void measure();
    document.addEventListener("visibilitychange", () => void this.look());
  }

  async look(): Promise<void> {
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      const next = readHealth(await getJson("/health", settings.get().apiKey));
      const isNews = this.server.get().state !== next.state;
      const wantsModels = next.state === "loading" || (next.state === "ready" && isNews);
      const isLocked = wantsModels && !(await this.lookAtModels());
      this.server.update((now) => {
        const then: Server = isLocked ? { state: "locked" } : next;
        return now.state === then.state && now.progress === then.progress ? now : then;
      });
    } finally {
      this.isLooking = false;
    }
  }

  /** Lets the server load a model, so that it is there when it is asked. */
  async load(model: string): Promise<void> {
    const loading = loadModel(model, settings.get().apiKey);
    setTimeout(() => void this.look(), noticedMs);
    try {
      await loading;
    } catch (error) {
      notify(error instanceof Error ? error.message : String(error));
    }
    await this.look();
    await this.lookAtModels();
  }

  /** Tries again with another key. */
  unlock(): void {
    this.server.set({ state: "unknown" });
    void this.look();
  }

  /** False if the server wants another key. */
  private async lookAtModels(): Promise<boolean> {
    const key = settings.get().apiKey;
    const answer = await getJson("/v1/models", key);
    if (answer?.status === 401) return false;
    if (answer?.status === 200) {
      const models = readModels(answer.json);
      this.models.set(models);
      // One that is gone would be refused.
      const { model } = settings.get();
      if (model !== "" && !models.some(({ id }) => id === model)) change({ model: "" });
    }
    const props = await getJson("/props", key);
    if (props?.status === 200) this.properties.set(readProperties(props.json));
    return true;
  }

  private async measure(): Promise<void> {
    const text = await getText("/metrics", settings.get().apiKey);
    if (text === undefined) return;
    const sums = readMetrics(text);
    const at = performance.now() / 1000;
    // Counts as answers grow; the sum of tokens is told only when they end.
    const tokens = sums.get("zinc_inter_token_latency_seconds_count");
    const { lastCount } = this;
    if (tokens !== undefined) this.lastCount = { at, tokens };
    if (tokens === undefined || lastCount === undefined) return;
    const sample = {
      at,
      tokensPerSecond: Math.max(0, tokens - lastCount.tokens) / Math.max(0.1, at - lastCount.at),
      memoryBytes: sums.get("zinc_device_memory_bytes"),
    };
    this.history.update((history) => withSample(history, sample));
  }
}

/** `/health` answers 200 when requests are served, and 503 with the reason else. */
export function readHealth(answer: { status: number; json: unknown } | undefined): Server {
  if (answer === undefined) return { state: "unreachable" };
  if (answer.status === 401) return { state: "locked" };
  if (answer.status === 200) return { state: "ready" };
  const json = isRecord(answer.json) ? answer.json : {};
  if (json["status"] !== "loading") return { state: "busy" };
  const { progress } = json;
  return { state: "loading", ...(typeof progress === "number" ? { progress } : {}) };
}

export function readModels(json: unknown): Model[] {
  const list: unknown = isRecord(json) ? json["data"] : undefined;
  if (!Array.isArray(list)) return [];
  return list.filter(isRecord).flatMap(({ id, meta, loaded: isLoaded }) => {
    if (typeof id !== "string") return [];
    const { architecture, n_ctx: contextTokens } = isRecord(meta) ? meta : {};
    return [
      {
        id,
        ...(typeof architecture === "string" ? { architecture } : {}),
        ...(typeof contextTokens === "number" ? { contextTokens } : {}),
        ...(typeof isLoaded === "boolean" ? { isLoaded } : {}),
      },
    ];
  });
}

export function readProperties(json: unknown): Properties {
  if (!isRecord(json)) return { sampling: {} };
  const { n_ctx: contextTokens, device, default_generation_settings: generation } = json;
  const from = isRecord(generation) ? generation : {};
  const deviceName = isRecord(device) ? device["name"] : undefined;
  return {
    sampling: Object.fromEntries(
      samplingParameters
        .map(({ name }) => [name, from[name]] as const)
        .filter(([, value]) => typeof value === "number"),
    ),
    ...(typeof contextTokens === "number" ? { contextTokens } : {}),
    ...(typeof deviceName === "string" ? { device: deviceName } : {}),
  };
}
