/** What all endpoints share. */
import type { EngineHost } from "./engine-host.ts";
import { ApiError } from "./api-error.ts";
import type { Metrics } from "./metrics.ts";
import type { OfferedModel, Shelf } from "./shelf.ts";
import type { SamplingDefaults } from "./work-request.ts";

export interface ServiceOptions {
  readonly shelf: Shelf;
  /** Refuse requests that name a model which is not offered. */
  readonly strictModel: boolean;
  /** After this a request that is not answered fails. */
  readonly timeoutMs: number;
  readonly sampling: SamplingDefaults;
  /** How long a stream may be silent before a ping shows that it is alive. */
  readonly pingMs: number;
  /** Of zinc, for clients that ask. */
  readonly version: string;
  /** Open `/test/calamity`, through which tests let the engine die. */
  readonly testHooks: boolean;
  readonly warn: (message: string) => void;
}

/** Names of unknown fields that are remembered, so that each is warned of once. */
const rememberedNames = 200;

export class Service {
  readonly host: EngineHost;
  readonly metrics: Metrics;
  readonly options: ServiceOptions;
  /** Unix time of the start, in seconds. */
  readonly startedS: number = Math.floor(Date.now() / 1000);
  readonly #warnedNames = new Set<string>();

  constructor(host: EngineHost, metrics: Metrics, options: ServiceOptions) {
    this.host = host;
    this.metrics = metrics;
    this.options = options;
  }

  /**
   * The model that a request names. No name, and one that nobody knows, stand for the model that is
   * loaded, unless names are strict.
   */
  modelOf(name: string | undefined): OfferedModel {
    const { shelf, strictModel } = this.options;
    const known = name === undefined ? undefined : shelf.find(name);
    if (known !== undefined) return known;
    if (strictModel && name !== undefined) throw modelNotFound(name, this.host.model.id);
    return this.host.model;
  }

  /** Warns once of each field that a client sends and zinc does not know. */
  noteUnknown(path: string, names: readonly string[]): void {
    for (const name of names) {
      const key = `${path} ${name}`;
      if (this.#warnedNames.has(key) || this.#warnedNames.size >= rememberedNames) continue;
      this.#warnedNames.add(key);
      this.options.warn(`${path}: the field ${name.slice(0, 60)} is unknown and has no effect`);
    }
  }

  /** Bytes of a body at most: much more than a prompt that fits the context can need. */
  get bodyBytesMax(): number {
    const contextBytes = (this.host.facts?.contextTokens ?? 0) * bytesPerToken;
    return Math.max(1 << 20, 16 * contextBytes);
  }
}

/** What a token of text takes on average. */
const bytesPerToken = 4;

export function modelNotFound(name: string, known: string): ApiError {
  const message = `the model ${name.slice(0, 100)} does not exist here; this is ${known}`;
  return new ApiError(404, "not_found_error", message, { param: "model", code: "model_not_found" });
}
