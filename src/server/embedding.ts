/** Embeddings of many texts, a few at a time, so that a long list needs no long queue. */
import { invariant } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import type { EmbeddingWork } from "./protocol.ts";

export interface Embeddings {
  /** In the order of the texts. */
  readonly vectors: readonly Float32Array[];
  readonly promptTokens: number;
}

/** Throws an `ApiError` for the first text that cannot be embedded. */
export async function embed(
  exchange: Exchange,
  inputs: readonly EmbeddingWork["input"][],
  options: Pick<EmbeddingWork, "dimensions" | "truncates">,
): Promise<Embeddings> {
  const { client, service } = exchange;
  const { parallel = 1 } = service.host.facts ?? {};
  const vectors: Float32Array[] = [];
  let promptTokens = 0;
  for (let start = 0; start < inputs.length; start += parallel) {
    const part = inputs.slice(start, start + parallel);
    const works = part.map((input) => ({ type: "embedding", input, client, ...options }) as const);
    for (const job of await exchange.start(works)) {
      const finish = await exchange.finishOf(job);
      invariant(finish.embedding !== undefined, "an embedding without a vector");
      vectors.push(finish.embedding);
      promptTokens += finish.promptTokens;
    }
  }
  exchange.promptTokens = promptTokens;
  return { vectors, promptTokens };
}
