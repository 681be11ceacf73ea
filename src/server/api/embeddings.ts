/** POST /v1/embeddings */
import { embed } from "../embedding.ts";
import type { Exchange } from "../exchange.ts";
import { checkBody } from "../schema/field.ts";
import { embeddingBody } from "../schema/openai.ts";

export async function embeddings(exchange: Exchange, body: unknown): Promise<Response> {
  const { service } = exchange;
  const { value, unknown } = checkBody(embeddingBody, body);
  exchange.useModel(value.model);
  service.noteUnknown(exchange.route, unknown);
  const { input, dimensions, encoding_format: format = "float" } = value;
  const { vectors, promptTokens } = await embed(exchange, input, { dimensions, truncates: false });
  const spell = format === "base64" ? toBase64 : (vector: Float32Array) => [...vector];
  return Response.json({
    object: "list",
    data: vectors.map((vector, index) => ({
      object: "embedding",
      index,
      embedding: spell(vector),
    })),
    model: exchange.modelId,
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
  });
}

/** Floats of four bytes each, the lowest first. */
function toBase64({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}
