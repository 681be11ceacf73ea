/** Who chooses the tokens of a request: the device, unless the host is needed. */
import { describe, expect, test } from "bun:test";
import type { TokenMask } from "../../src/chat/shape/token-mask.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { FinishReason, GenerationRequest } from "../../src/engine/generation.ts";
import { defaultSampling } from "../../src/engine/sampling.ts";
import { EngineSource } from "../../src/server/engine-source.ts";
import type { TokenRequest } from "../../src/server/token-source.ts";

const plain: TokenRequest = {
  prompt: [1],
  maxTokens: 1,
  sampling: defaultSampling,
  endTokens: new Set(),
  client: "",
  boundaries: [],
  logprobs: undefined,
  mask: undefined,
  signal: new AbortController().signal,
  onBegin: () => {},
};

/** What the engine is told of the sampler. */
async function isOnDevice(request: Partial<TokenRequest>): Promise<boolean> {
  const asked: GenerationRequest[] = [];
  const engine = {
    async *generate(given: GenerationRequest): AsyncGenerator<number, FinishReason> {
      asked.push(given);
      return "length";
    },
  };
  const source = new EngineSource(engine as unknown as Engine);
  await source.generate({ ...plain, ...request }).next();
  return asked[0]?.sampler.onDevice !== undefined;
}

describe("the server's tokens", () => {
  test("are chosen on the device, greedily or not", async () => {
    expect(await isOnDevice({})).toBe(true);
    expect(await isOnDevice({ sampling: { ...defaultSampling, temperature: 0 } })).toBe(true);
  });

  test("are chosen on the host if somebody wants their logprobs", async () => {
    expect(await isOnDevice({ logprobs: 0 })).toBe(false);
  });

  test("are chosen on the host if they have to spell something", async () => {
    expect(await isOnDevice({ mask: {} as TokenMask })).toBe(false);
  });

  test("are chosen on the host if it looks back on them", async () => {
    expect(await isOnDevice({ sampling: { ...defaultSampling, presencePenalty: 1 } })).toBe(false);
  });
});
