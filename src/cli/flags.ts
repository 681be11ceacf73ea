/** Flags that several commands share. */
import { draftSources } from "../engine/drafter.ts";
import { kvTypeNames, kvTypesName, parseKvTypes, type KvTypeName } from "../kernels/kv-type.ts";
import {
  anyText,
  integer,
  integers,
  number,
  oneOf,
  parsed,
  sizes,
  text,
  texts,
  toggle,
  words,
  type Flag,
} from "./flag.ts";

export const modelFlags = {
  model: text("model", "file or managed name (default $ZINC_MODEL, else the active one)", {
    alias: "m",
    completes: "models",
  }),
} as const;

/** What a command that takes a model looks at. */
export const modelEnvironment = {
  ZINC_MODELS: "folder of the managed models; default $XDG_DATA_HOME/zinc/models",
  XDG_CONFIG_HOME: "where zinc/config.json names the active model; default ~/.config",
} as const;

export const deviceFlags = {
  device: text("device", "number or part of a name, from zinc devices (default the best)", {
    alias: "d",
  }),
} as const;

/** For commands that run models: on one device, or on several. */
export const placeFlags = {
  ...deviceFlags,
  devices: words("list", "spread the layers over these, as 0,1 (default one device)"),
  deviceMemory: sizes("list", "to take of each at most, as 24GB,12GB (default what is free)"),
} as const;
/** Types of the cache: one, or one for keys and one for values. */
function kvTypes(): Flag<KvTypeName> {
  const description = `of the cache: ${kvTypeNames.join(", ")}, or two for K,V (default f16)`;
  const problem = `must be one or two (for K,V) of ${kvTypeNames.join(", ")}`;
  const parse = (word: string) => {
    const types = parseKvTypes(word);
    return types && kvTypesName(types);
  };
  return parsed("type", kvTypeNames, description, parse, problem);
}

export const contextFlags = {
  ctx: integer(
    "tokens",
    "context length; by default as much as fits, up to the model's",
    { min: 1 },
    { alias: "c" },
  ),
  kvType: kvTypes(),
  deterministic: toggle("results that do not depend on how work is batched"),
} as const;

export const draftFlags = {
  draft: oneOf(draftSources, "guess tokens and verify several at once (default ngram on GPUs)"),
} as const;

export const samplingFlags = {
  maxTokens: integer(
    "n",
    "length of the answer; by default up to the end of the context",
    { min: 0 },
    { alias: "n" },
  ),
  temp: number("t", "temperature; 0 always takes the best token (default 0.8)", {
    min: 0,
    max: 100,
  }),
  topK: integer("k", "keep the k best tokens, 0 for all (default 40)", { min: 0, max: 1 << 30 }),
  topP: number("p", "keep tokens up to this probability in all (default 0.95)", {
    above: 0,
    max: 1,
  }),
  minP: number("p", "keep tokens this likely relative to the best (default 0.05)", {
    min: 0,
    max: 1,
  }),
  repeatPenalty: number("x", "weaken recent tokens by this factor (default 1)", {
    above: 0,
    max: 100,
  }),
  presencePenalty: number("x", "weaken tokens that occurred (default 0)", { min: -100, max: 100 }),
  frequencyPenalty: number("x", "weaken tokens by how often they occurred (default 0)", {
    min: -100,
    max: 100,
  }),
  seed: integer("n", "the same seed gives the same text (default random)", { min: 0 }),
  logitBias: texts("id=bias", "add to the logit of a token, -inf bans it (default none)"),
  stop: texts("text", "end the answer at this text; may be repeated (default none)"),
  ignoreEos: toggle("go on behind the tokens that usually end an answer"),
} as const;

export const promptFlags = {
  prompt: anyText("text", "what to say, behind the text on stdin (default empty)", { alias: "p" }),
  raw: toggle("the prompt as it is: no chat template, special tokens count"),
  tokens: integers("ids", "token ids instead of text, as they are: 1,2,3 (default none)"),
  template: text("file", "a chat template in Jinja (default the model's own)", {
    completes: "files",
  }),
} as const;

export const chatFlags = {
  system: text("text", "what the model is told before all else (default nothing)"),
  think: oneOf(
    ["on", "off", "auto"],
    "think before the answer; auto leaves it to the model (default)",
  ),
  tools: text("file", "functions the model may call, a list in JSON (default none)", {
    completes: "files",
  }),
} as const;

/** What an answer must look like. */
export const shapeFlags = {
  grammar: text("gbnf", "hold the answer to a grammar in GBNF (default none)"),
  grammarFile: text("file", "the same from a file (default none)", { completes: "files" }),
  jsonSchema: text("json", "the same for a JSON schema, or a file of one (default none)", {
    completes: "files",
  }),
} as const;

export const outputFlags = {
  json: toggle("print one JSON object instead of text"),
  quiet: toggle("nothing on stderr but errors", { alias: "q" }),
} as const;

/** Every command takes these. */
export const globalFlags = {
  color: oneOf(["auto", "always", "never"], "coloured text (default auto)"),
  help: toggle("show this help", { alias: "h" }),
} as const;
