/** Embeddings through the official clients. A script's is (sum of ids, their count, 0, ½). */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { builtinChat } from "../helpers/builtin-chat.ts";
import { refusal } from "../helpers/refusal.ts";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

const source = new ScriptedSource("", 2);
let served: Served;
let client: OpenAI;

beforeAll(async () => {
  served = await serve({ source, queueMax: 0 });
  client = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 0 });
});

beforeEach(() => {
  source.prefillMs = 0;
});

afterAll(() => served.server.close());

const { tokenizer } = await builtinChat();
const vectorOf = (text: string) => {
  const ids = tokenizer.encode(text);
  return [ids.reduce((sum, id) => sum + id, 0), ids.length, 0, 0.5];
};

describe("embeddings", () => {
  test("come as the client asks for them, which is base64 unless it says otherwise", async () => {
    const one = await client.embeddings.create({ model: "spark", input: "The fox" });
    expect(one).toMatchObject({ object: "list", model: "spark" });
    expect(one.data).toEqual([{ object: "embedding", index: 0, embedding: vectorOf("The fox") }]);
    const { length } = tokenizer.encode("The fox");
    expect(one.usage).toEqual({ prompt_tokens: length, total_tokens: length });
    const input = { model: "spark", input: "The fox", encoding_format: "float" as const };
    expect((await client.embeddings.create(input)).data).toEqual(one.data);
    const raw = await served.post("/v1/embeddings", { ...input, encoding_format: "base64" });
    const { data } = (await raw.json()) as { data: { embedding: string }[] };
    const { buffer } = Uint8Array.from(Buffer.from(data[0]!.embedding, "base64"));
    expect([...new Float32Array(buffer)]).toEqual(vectorOf("The fox"));
  });

  test("of many texts come in their order, though few are made at a time", async () => {
    const input = Array.from({ length: 9 }, (_unused, i) => "a ".repeat(i + 1));
    const { data, usage } = await client.embeddings.create({ model: "s", input });
    expect(data.map(({ index, embedding }) => [index, embedding])).toEqual(
      input.map((text, index) => [index, vectorOf(text)]),
    );
    expect(usage.prompt_tokens).toBe(data.reduce((sum, one) => sum + (one.embedding[1] ?? 0), 0));
  });

  test("take ids, one list or several, and fewer dimensions", async () => {
    const create = (input: number[] | number[][], dimensions?: number) =>
      client.embeddings.create({ model: "s", input, ...(dimensions && { dimensions }) });
    expect((await create([3, 4])).data.map((one) => one.embedding)).toEqual([[7, 2, 0, 0.5]]);
    const two = await create([[3], [5, 6]], 2);
    expect(two.data.map((one) => one.embedding)).toEqual([
      [3, 1],
      [11, 2],
    ]);
  });

  test.each([
    [{}, "input is missing", "input"],
    [{ input: [] }, "input must not be empty", "input"],
    [{ input: "" }, "the prompt is empty", "input"],
    [
      { input: [["a"]] },
      "input must be a string, a list of token ids, or a list of these",
      "input",
    ],
    [{ input: [9999] }, "token 9999 is not in the vocabulary; ids go from 0 to 4095", "input"],
    [{ input: "a", encoding_format: "hex" }, "encoding_format must be float or base64", undefined],
    [{ input: "a", dimensions: 0 }, "dimensions must be a whole number from 1", "dimensions"],
    [
      { input: "a", dimensions: 5 },
      "Spark Llama has embeddings of 4 dimensions, not 5",
      "dimensions",
    ],
  ])("of %j are refused", async (body, message, param) => {
    const response = await served.post("/v1/embeddings", body);
    const { error } = (await response.json()) as { error: object };
    expect(response.status).toBe(400);
    expect(error).toMatchObject({
      message,
      type: "invalid_request_error",
      ...(param && { param }),
    });
  });

  test("of what does not fit the context are refused, or cut for Ollama's clients", async () => {
    const long = "word ".repeat(600);
    const response = await served.post("/v1/embeddings", { input: long });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { code: "context_length_exceeded", param: "input", n_ctx: 512 },
    });
    const ollama = new Ollama({ host: served.url });
    const cut = await ollama.embed({ model: "spark", input: long });
    expect(cut).toMatchObject({ model: "spark", prompt_eval_count: 512 });
    expect(cut.embeddings).toHaveLength(1);
    const whole = await refusal(ollama.embed({ model: "spark", input: long, truncate: false }));
    expect(String(whole)).toContain("tokens and the context 512");
    const two = await ollama.embed({ model: "spark", input: ["The fox", "a"] });
    expect(two.embeddings).toEqual(["The fox", "a"].map(vectorOf));
  });

  test("end with their client", async () => {
    source.prefillMs = 5000;
    const controller = new AbortController();
    const body = { model: "s", input: ["a", "b"] };
    const asked = refusal(client.embeddings.create(body, { signal: controller.signal }));
    while (source.activeCount < 2) await Bun.sleep(5);
    controller.abort();
    expect(await asked).toMatchObject({ message: "Request was aborted." });
    while (source.activeCount > 0) await Bun.sleep(5);
    expect(served.host.jobCount).toBe(0);
  });
});
