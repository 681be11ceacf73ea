/**
 * How each family of byte-pair tokenizers cuts text before merging, in the notation of the models'
 * own `tokenizer.json`. A family is a list of steps; each cuts the pieces that the one before left.
 */
import { splitDigits } from "./digit-groups.ts";
import { casedLetters, asianScripts, deepseekScripts } from "./letter-ranges.ts";

/** Cuts one piece and appends the parts to `out`. */
export type Splitter = (piece: string, out: string[]) => void;

export interface Family {
  /** A pattern cuts out its matches; what lies between them stays as pieces too. */
  readonly steps: readonly (string | RegExp | Splitter)[];
  /** Tokens spell bytes in the GPT-2 alphabet, or are plain UTF-8 with U+2581 for a space. */
  readonly spelling: "bytes" | "plain";
  /** A piece that is a token as a whole is not built up from merges. */
  readonly ignoreMerges?: true;
  /** The prompt begins with BOS even if the file does not say so. */
  readonly addBos?: true;
  /** A run of newlines that is a token as a whole is not built up from merges. */
  readonly wholeNewlines?: true;
}

/**
 * Unicode's White_Space. JavaScript's own `\s` has U+FEFF and lacks U+0085; the models' engines do
 * not agree.
 */
const whitespace = String.raw`\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`;

/** `(?i:'s|'t|'re|'ve|'m|'ll|'d)`; the long s is an s in lower case to the models' engines. */
const contraction = "'(?:[sSſtTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])";
const spaces = String.raw`\s*[\r\n]+|\s+(?!\S)|\s+`;
const symbols = String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`;
const word = String.raw`[^\r\n\p{L}\p{N}]?\p{L}+`;

/** Words that change from lower to upper case are cut there. */
function casedWords(upper: string, lower: string, suffix: string): string {
  const before = String.raw`[^\r\n\p{L}\p{N}]?`;
  return `${before}${upper}*${lower}+${suffix}|${before}${upper}+${lower}*${suffix}`;
}
const upper = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`;
const lower = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;
const symbolsWithSlash = String.raw` ?[^\s\p{L}\p{N}]+[\r\n/]*`;

const gpt2Pattern =
  "'s|'t|'re|'ve|'m|'ll|'d|" + String.raw` ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`;
const llama3Pattern = String.raw`${contraction}|${word}|\p{N}{1,3}|${symbols}|${spaces}`;
const qwen2Pattern = String.raw`${contraction}|${word}|\p{N}|${symbols}|${spaces}`;
const gpt4oWords = casedWords(upper, lower, `(?:${contraction})?`);
const gpt4oPattern = String.raw`${gpt4oWords}|\p{N}{1,3}|${symbolsWithSlash}|${spaces}`;
const asciiPunctuation = String.raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_\x60{|}~]`;
const deepseekWords = String.raw`${asciiPunctuation}[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+`;
const deepseek3Pattern = String.raw`${deepseekWords}| ?[\p{P}\p{S}]+[\r\n]*|${spaces}`;
const chineseAndKana = String.raw`[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+`;
const bloomPattern = String.raw` ?[^(\s|.,!?…。，、।۔،)]+`;

function byteLevel(...steps: Family["steps"]): Family {
  return { steps, spelling: "bytes" };
}

export const gpt2 = byteLevel(gpt2Pattern);
export const fallback = byteLevel(
  String.raw`[\p{P}\$\+<=>\^~\|]+`,
  gpt2Pattern,
  String.raw`\p{N}+`,
  "[0-9][0-9][0-9]",
);
export const falcon = byteLevel(
  String.raw`[\p{P}\$\+<=>\^~\|\x60]+`,
  gpt2Pattern,
  "[0-9][0-9][0-9]",
);
export const starcoder = byteLevel(String.raw`\p{N}`, gpt2Pattern);
export const llama3 = byteLevel(llama3Pattern);
export const qwen2 = byteLevel(qwen2Pattern);
export const qwen35 = byteLevel(
  String.raw`${contraction}|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|` +
    String.raw` ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|${spaces}`,
);
export const minicpm5 = byteLevel(
  String.raw`\p{N}{1,3}`,
  String.raw`${contraction}|${word}|\p{N}+|${symbols}|${spaces}`,
);
export const jais2 = byteLevel(
  String.raw`${contraction}|${word}|\p{N}{1,3}|${symbols}|\s*[\r\n]+|` +
    [512, 256, 128, 64, 32, 16, 8, 4, "1,2"]
      .map((count) => String.raw`\s{${count}}(?!\S)|`)
      .join("") +
    String.raw`\s`,
);
export const tekken = byteLevel(
  String.raw`${casedWords(upper, lower, "")}|\p{N}|${symbolsWithSlash}|${spaces}`,
);
export const gpt4o = byteLevel(gpt4oPattern);
export const tinyAya = byteLevel(
  splitDigits({
    run: /\p{Nd}+/gu,
    isolate: true,
    notBefore: /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]/uy,
  }),
  gpt4oPattern,
);
export const deepseek3 = byteLevel(String.raw`\p{N}{1,3}`, chineseAndKana, deepseek3Pattern);
export const spark25 = byteLevel(
  String.raw`\p{N}{1,3}`,
  chineseAndKana,
  String.raw`${deepseekWords}| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+`,
  String.raw`\p{N}`,
);
export const afmoe = byteLevel(
  splitDigits({ run: /\p{N}+/gu, isolate: true }),
  `[${asianScripts}]+`,
  deepseek3Pattern,
);
export const deepseekCoder = byteLevel(
  String.raw`[\r\n]`,
  String.raw`\s?\p{L}+`,
  String.raw`\s?\p{P}+`,
  `[${deepseekScripts}]+`,
  String.raw`\p{N}`,
);
export const deepseekLlm = byteLevel(
  String.raw`[\r\n]`,
  String.raw`\s?[${casedLetters}]+`,
  String.raw`\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+`,
  // `\s+$`, told that it can only begin where a run of spaces begins: else each space is tried.
  String.raw`(?<!\s)\s+$`,
  `[${deepseekScripts}]+`,
  String.raw`\p{N}+`,
);
export const youtu = byteLevel(
  String.raw`[\uac00-\ud7a3\u3131-\u318e]+|[！…“”‘’—：；，\u3001-\u303f\ufe30-\ufe4f]+|` +
    String.raw`[\u3105-\u312f]+|${chineseAndKana}`,
  String.raw`${gpt4oWords}|\p{N}|${symbolsWithSlash}|${spaces}`,
);
export const bloom = byteLevel(bloomPattern);
export const viking = byteLevel(bloomPattern, String.raw`\p{N}`);
export const chameleon = byteLevel(
  "<sentinel:[0-9]+>",
  "IMGIMG[A-I]{1,4}Z",
  String.raw`[\t\n]|    |  `,
  String.raw`\p{N}`,
  String.raw`[\p{P}!-/:-@\[-\x60{-~]`,
  gpt2Pattern,
);
export const bailingMoe = byteLevel(
  String.raw`${contraction}|${word}|\p{N}|${symbols}|\s*[\r\n]|\s+(?!\S)|\s+`,
);
export const seedCoder = byteLevel(
  String.raw`${contraction}|${word}|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|${spaces}`,
);
export const ufakzeka = byteLevel(String.raw`${word}|\p{N}|${symbols}|${spaces}`);
export const laguna = byteLevel(String.raw`[^\n]+|\n+`, qwen2Pattern);
export const exaoneMoe = byteLevel(
  // The model's file has (?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+, which is the same in nested loops.
  String.raw`${contraction}|[^\r\n\p{L}\p{N}]?\p{L}(?:[\p{L}\p{M}]| \p{L})*|\p{N}|` +
    String.raw` ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`,
);
export const superBpe = byteLevel(
  String.raw`\p{N}+`,
  splitDigits({ run: /\p{Nd}+/gu, isolate: false }),
);
export const kimiK2 = byteLevel(
  new RegExp(
    toJavaScript(
      String.raw`\p{Script=Han}+|` +
        casedWords(
          String.raw`[${upper}--\p{Script=Han}]`,
          String.raw`[${lower}--\p{Script=Han}]`,
          `(?:${contraction})?`,
        ) +
        String.raw`|\p{N}{1,3}|${symbols}|${spaces}`,
    ),
    "gv",
  ),
);
export const gemma4: Family = {
  steps: [String.raw`[^\n]+|\n+`],
  spelling: "plain",
  addBos: true,
  wholeNewlines: true,
};
export const sarvamMoe: Family = { steps: [String.raw`[^\n]+|\n+`], spelling: "plain" };

/** Spells out `\s` and `\S` as the models' engines understand them. */
export function toJavaScript(pattern: string): string {
  let inClass = false;
  return pattern.replace(/\\.|[[\]]/gsu, (part) => {
    if (part === "[") inClass = true;
    if (part === "]") inClass = false;
    if (part === String.raw`\s`) return inClass ? whitespace : `[${whitespace}]`;
    return part === String.raw`\S` ? `[^${whitespace}]` : part;
  });
}
