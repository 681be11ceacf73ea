/** The values of `tokenizer.ggml.pre`, the family each belongs to, and the cutting itself. */
import * as families from "./split-patterns.ts";
import { toJavaScript, type Family, type Splitter } from "./split-patterns.ts";

const llama3: Family = { ...families.llama3, ignoreMerges: true, addBos: true };
const tekken: Family = { ...families.tekken, ignoreMerges: true, addBos: true };

const preTokenizers = {
  default: families.fallback,
  llama3,
  "llama-v3": llama3,
  "llama-bpe": llama3,
  falcon3: llama3,
  "falcon-h1": llama3,
  pixtral: llama3,
  "midm-2.0": llama3,
  lfm2: llama3,
  "jina-v5-nano": llama3,
  dbrx: families.llama3,
  "smaug-bpe": families.llama3,
  glm4: families.llama3,
  "chatglm-bpe": families.llama3,
  "jais-2": families.jais2,
  minicpm5: { ...families.minicpm5, ignoreMerges: true },
  "deepseek-llm": families.deepseekLlm,
  "deepseek-coder": families.deepseekCoder,
  "deepseek-v3": families.deepseek3,
  "hunyuan-dense": families.deepseek3,
  "joyai-llm": families.deepseek3,
  hy_v4: families.deepseek3,
  spark2_5: families.spark25,
  youtu: { ...families.youtu, ignoreMerges: true },
  falcon: families.falcon,
  "gpt-2": families.gpt2,
  "phi-2": families.gpt2,
  "jina-es": families.gpt2,
  "jina-de": families.gpt2,
  "jina-v1-en": families.gpt2,
  "jina-v2-es": families.gpt2,
  "jina-v2-de": families.gpt2,
  "jina-v2-code": families.gpt2,
  "roberta-bpe": families.gpt2,
  "modern-bert": families.gpt2,
  gigachat: families.gpt2,
  "a.x-4.0": families.gpt2,
  mellum: families.gpt2,
  mpt: families.gpt2,
  olmo: families.gpt2,
  jais: families.gpt2,
  trillion: families.gpt2,
  "granite-docling": families.gpt2,
  exaone4: families.gpt2,
  starcoder: families.starcoder,
  refact: families.starcoder,
  "command-r": families.starcoder,
  smollm: families.starcoder,
  codeshell: families.starcoder,
  exaone: families.starcoder,
  "minerva-7b": families.starcoder,
  mellum2: families.starcoder,
  qwen2: families.qwen2,
  "deepseek-r1-qwen": families.qwen2,
  kormo: families.qwen2,
  f2llmv2: families.qwen2,
  megrez: families.qwen2,
  stablelm2: families.qwen2,
  hunyuan: families.qwen2,
  "solar-open": families.qwen2,
  "grok-2": families.qwen2,
  qwen35: families.qwen35,
  tekken,
  "gpt-4o": families.gpt4o,
  llama4: families.gpt4o,
  kanana2: families.gpt4o,
  talkie: families.gpt4o,
  "minimax-m2": families.gpt4o,
  "granite-embed-multi-97m": { ...families.gpt4o, ignoreMerges: true },
  tiny_aya: families.tinyAya,
  cohere2moe: families.tinyAya,
  bloom: families.bloom,
  "poro-chat": families.bloom,
  "gpt3-finnish": families.bloom,
  viking: families.viking,
  chameleon: { ...families.chameleon, addBos: true },
  superbpe: families.superBpe,
  bailingmoe: families.bailingMoe,
  bailingmoe2: families.bailingMoe,
  "llada-moe": families.bailingMoe,
  "seed-coder": families.seedCoder,
  "exaone-moe": families.exaoneMoe,
  ufakzeka: families.ufakzeka,
  laguna: families.laguna,
  "kimi-k2": families.kimiK2,
  afmoe: families.afmoe,
  gemma4: families.gemma4,
  "granite-embed-multi-311m": families.gemma4,
  "sarvam-moe": families.sarvamMoe,
} as const satisfies Record<string, Family>;

/** Every name that has a row. */
export const preTokenizerNames: readonly string[] = Object.keys(preTokenizers);

/** The family of a name; `undefined` for a name without a row. */
export function familyOf(name: string): Family | undefined {
  const rows: Readonly<Record<string, Family>> = preTokenizers;
  return Object.hasOwn(rows, name) ? rows[name] : undefined;
}

/** The cutting of text into the pieces that merges do not cross. */
export class Pretokenizer {
  readonly #steps: readonly Splitter[];

  constructor(steps: Family["steps"]) {
    this.#steps = steps.map(splitter);
  }

  split(text: string): string[] {
    let pieces = [text];
    for (const step of this.#steps) {
      const parts: string[] = [];
      for (const piece of pieces) step(piece, parts);
      pieces = parts;
    }
    return pieces;
  }
}

function splitter(step: Family["steps"][number]): Splitter {
  if (typeof step === "function") return step;
  const pattern = typeof step === "string" ? new RegExp(toJavaScript(step), "gu") : step;
  return (piece, out) => {
    let from = 0;
    pattern.lastIndex = 0;
    for (let match = pattern.exec(piece); match !== null; match = pattern.exec(piece)) {
      if (match.index > from) out.push(piece.slice(from, match.index));
      out.push(match[0]);
      from = pattern.lastIndex;
    }
    if (from < piece.length) out.push(piece.slice(from));
  };
}
