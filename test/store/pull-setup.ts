/** What tests of downloads start from: a file to serve, an empty store, and little patience. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Access } from "../../src/store/exchange.ts";
import { ModelStore } from "../../src/store/model-store.ts";
import { pullModel, type PullOptions } from "../../src/store/pull.ts";
import type { RetryOptions } from "../../src/store/retry.ts";
import { parseReference, type Source } from "../../src/store/reference.ts";
import type { Placed } from "../../src/store/placement.ts";
import { forgeGguf } from "../helpers/gguf-forge.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

/** A model of a bit more than 5 MiB, which a download takes in 6 pieces. */
export const modelBytes: Uint8Array<ArrayBuffer> = forgeModel(1);

export const sha256 = (bytes: Uint8Array): string =>
  new Bun.CryptoHasher("sha256").update(bytes).digest("hex");

export function forgeModel(seed: number): Uint8Array<ArrayBuffer> {
  const random = new SeededRandom(seed);
  const values = 11 << 17;
  const bytes = new Uint8Array(values * 4);
  for (let i = 0; i < bytes.length; i += 97) bytes[i] = random.below(256);
  return forgeGguf({ tensors: [{ name: "w", dims: [values], type: "F32", bytes }] });
}

export function emptyStore(): ModelStore & Disposable {
  const folder = mkdtempSync(join(tmpdir(), "zinc-store-"));
  return Object.assign(new ModelStore(folder), {
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  });
}

export function sourceAt(url: string, known: { sha256?: string; sizeBytes?: number } = {}): Source {
  const reference = parseReference(url, "https://hub.invalid");
  if (reference.kind !== "source") throw new Error(`${url} is no source`);
  const files = reference.source.files.map((file) => ({ ...file, ...known }));
  return { ...reference.source, files };
}

export const noAccess: Access = { origins: [] };

/** A few milliseconds between attempts. */
export function retrying(): RetryOptions {
  const timing = {
    attempts: 4,
    firstPauseMs: 2,
    pauseMsMax: 10,
    askedPauseMsMax: 50,
    silenceMs: 300,
  };
  return { timing, signal: new AbortController().signal, onPause: () => {} };
}

/** Pulls as "m". */
export function pull(
  store: ModelStore,
  source: Source,
  options: Partial<PullOptions> = {},
): Promise<Placed> {
  return pullModel(store, source, "m", {
    ...retrying(),
    force: false,
    connections: 3,
    access: noAccess,
    onWait: () => {},
    onProgress: () => {},
    ...options,
  });
}
