/**
 * Keys whose type is fixed, checked once for every reader. A vocabulary's scores read as bytes
 * would give wrong text and no error. Which keys must be there, and what they may say, is for those
 * who use them.
 */
import { badFile } from "./bad-file.ts";
import { describeType, type GgufValue } from "./metadata.ts";

const integerTypes: readonly string[] = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"];

const text = { what: "a string", fits: (v: GgufValue) => v.type === "string" };
const texts = { what: "an array of strings", fits: (v: GgufValue) => v.type === "strings" };
const integer = { what: "an integer", fits: (v: GgufValue) => integerTypes.includes(v.type) };
const truth = { what: "true or false", fits: (v: GgufValue) => v.type === "bool" };
const integers = {
  what: "an array of integers",
  fits: (v: GgufValue) => v.type === "numbers" && integerTypes.includes(v.value.elementType),
};
const floats = {
  what: "an array of floats",
  fits: (v: GgufValue) => v.type === "numbers" && v.value.elementType.startsWith("f"),
};

type Rule = { readonly what: string; readonly fits: (value: GgufValue) => boolean };

/** A map, because keys come from files: an object would have rules for "constructor" too. */
const rules: ReadonlyMap<string, Rule> = new Map(
  Object.entries({
    "general.architecture": text,
    "general.alignment": integer,
    "split.no": integer,
    "split.count": integer,
    "split.tensors.count": integer,
    "tokenizer.ggml.model": text,
    "tokenizer.ggml.pre": text,
    "tokenizer.ggml.tokens": texts,
    "tokenizer.ggml.merges": texts,
    "tokenizer.ggml.scores": floats,
    "tokenizer.ggml.token_type": integers,
    "tokenizer.ggml.add_bos_token": truth,
    "tokenizer.ggml.add_eos_token": truth,
    "tokenizer.ggml.add_space_prefix": truth,
    "tokenizer.ggml.remove_extra_whitespaces": truth,
    "tokenizer.ggml.precompiled_charsmap": integers,
    "tokenizer.chat_template": text,
  }),
);

/** Throws `UserError` if a key that everybody knows has another type than everybody expects. */
export function checkKnownKeys(pairs: ReadonlyMap<string, GgufValue>, fileName: string): void {
  for (const [key, value] of pairs) {
    const isTokenId = key.startsWith("tokenizer.ggml.") && key.endsWith("_token_id");
    const rule = isTokenId ? integer : rules.get(key);
    if (rule === undefined || rule.fits(value)) continue;
    const found = describeType(value);
    throw badFile(fileName, `metadata ${key} must be ${rule.what} and is ${found}`);
  }
}
