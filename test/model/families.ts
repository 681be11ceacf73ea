/**
 * A tiny model of each architecture, with everything switched on that the architecture has, in
 * sizes at which 64 tokens show it: windows of less, caps that bite, contexts that are stretched.
 */
import type { TinyModel } from "../helpers/tiny-model.ts";
import { granite, lfm2, mistral3, phi3, qwen2, qwen3, smollm3 } from "./families/dense.ts";
import {
  gemma,
  gemma2,
  gemma3,
  gemma4Large,
  gemma4Mixture,
  gemma4Small,
} from "./families/gemma.ts";
import { gptOss, granitemoe, mixtral, qwen2moe, qwen3moe } from "./families/mixtures.ts";
import { plain } from "./families/parts.ts";

/** By the name of the case, which starts with the architecture. */
export const families: Readonly<Record<string, () => TinyModel>> = {
  llama: () => plain("llama", 1, { layers: 3, width: 128, heads: 4, kvHeads: 2, headWidth: 32 }),
  qwen2,
  qwen3,
  gemma,
  gemma2,
  gemma3,
  "gemma4 large": gemma4Large,
  "gemma4 small": gemma4Small,
  "gemma4 mixture": gemma4Mixture,
  "phi3 short": () => phi3(4096),
  "phi3 long": () => phi3(48),
  mistral3,
  granite,
  smollm3,
  lfm2: () => lfm2(18),
  lfm2moe: () => lfm2(19, { count: 8, used: 2, inner: 64 }),
  "llama mixture": mixtral,
  granitemoe,
  qwen2moe,
  qwen3moe,
  "gpt-oss": () => gptOss(),
};

/** Tokens that each model is fed with. */
export function familyTokens(model: TinyModel): number[] {
  return Array.from(
    { length: 64 },
    (_unused, i) => (i * i * 7 + i * 31 + 5) % model.vocabularySize,
  );
}
