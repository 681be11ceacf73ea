/** Real vocabularies: every text of the reference vectors must give exactly the reference ids. */
import { describe, expect, test } from "bun:test";
import {
  hasShared,
  modelMetadata,
  quietTokenizer,
  readGolden,
  readVectors,
  vectorMetadata,
} from "./vocabularies.ts";

const vocabularies = [
  "command-r",
  "deepseek-coder",
  "deepseek-llm",
  "falcon",
  "gemma-4",
  "gpt-2",
  "llama-bpe",
  "llama-spm",
  "phi-3",
  "qwen2",
  "qwen35",
  "starcoder",
];

describe.skipIf(!hasShared)("real vocabularies (skipped where ../shared does not exist)", () => {
  test.each(vocabularies)("%s: all 136 texts give the reference ids, both ways", (name) => {
    const tokenizer = quietTokenizer(vectorMetadata(name));
    const cases = readVectors(name);
    expect(cases.length).toBe(136);
    for (const { text, ids, special } of cases) {
      expect({ text, ids: tokenizer.encode(text) }).toEqual({ text, ids });
      expect({ text, ids: tokenizer.encode(text, { special: true }) }).toEqual({
        text,
        ids: special,
      });
    }
  });

  test.each(vocabularies)("%s: decoding gives the text back, at once and in a stream", (name) => {
    const tokenizer = quietTokenizer(vectorMetadata(name));
    const space = name === "llama-spm" || name === "phi-3" ? " " : "";
    for (const { text, ids, special } of readVectors(name)) {
      expect(tokenizer.decode(ids)).toBe(text);
      const decoder = tokenizer.decoder({ special: true });
      expect(ids.map((id) => decoder.push(id)).join("") + decoder.flush()).toBe(space + text);
      // Where a special token swallowed or added space, the text is not the same.
      if (name !== "phi-3" && name !== "llama-spm") {
        expect(tokenizer.decode(special, { special: true })).toBe(text);
      }
    }
  });

  test.each([
    ["qwen2", "spark-llama-Q4_K_M"],
    ["qwen35", "spark-qwen35-Q4_K_M"],
    ["qwen35", "spark-qwen35moe-Q4_K_M"],
  ])("the golden ids of %s, with the vocabulary of %s", (pre, model) => {
    const tokenizer = quietTokenizer(modelMetadata(model));
    const cases = readGolden(pre);
    expect(cases.length).toBe(22);
    for (const { text, tokens } of cases) {
      expect({ text, ids: tokenizer.encode(text, { special: true }) }).toEqual({
        text,
        ids: tokens,
      });
      expect(tokenizer.decode(tokens, { special: true })).toBe(text);
    }
  });
});
