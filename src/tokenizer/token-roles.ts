/**
 * Which ids begin and end a text, which end a generation, and whether the file wants them added to
 * a prompt.
 */
import type { Metadata } from "../gguf/metadata.ts";
import { kinds, type Vocabulary } from "./vocabulary.ts";

export interface TokenRoles {
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  readonly unknownId: number | undefined;
  readonly addBos: boolean;
  readonly addEos: boolean;
  /** A model that makes one of these has finished. */
  readonly endOfGeneration: ReadonlySet<number>;
  /** Control tokens that are shown all the same, because readers of the answer look for them. */
  readonly shown: ReadonlySet<number>;
}

/** What a tokenizer does where the file says nothing. */
export interface RoleDefaults {
  readonly bosId?: number;
  readonly eosId?: number;
  readonly unknownId?: number;
  readonly addBos?: boolean;
  /** BOS is added even if the file says that it is not. */
  readonly forceBos?: boolean;
}

/** Tokens that end a generation whatever the file calls them. */
const endTexts = [
  "<|eot_id|>",
  "<|im_end|>",
  "<|end|>",
  "<|return|>",
  "<|call|>",
  "<|flush|>",
  "<|calls|>",
  "<end_of_turn>",
  "<turn|>",
  "<|endoftext|>",
  "</s>",
  "<|eom_id|>",
  "<EOT>",
  "_<EOT>",
  "[EOT]",
  "[EOS]",
  "<|end_of_text|>",
  "<end_of_utterance>",
  "<eos>",
  "<|tool_response>",
  "<｜end▁of▁sentence｜>",
  "[e~[",
];

/** Marks for filling in the middle of a text: control tokens, of which some end the middle. */
const fillRoles = {
  fim_pre: {
    older: "prefix",
    ends: false,
    texts: [
      "<|fim_prefix|>",
      "<fim-prefix>",
      "<fim_prefix>",
      "<｜fim▁begin｜>",
      "<PRE>",
      "▁<PRE>",
      "<|code_prefix|>",
      "<|prefix|>",
    ],
  },
  fim_suf: {
    older: "suffix",
    ends: false,
    texts: [
      "<|fim_suffix|>",
      "<fim-suffix>",
      "<fim_suffix>",
      "<｜fim▁hole｜>",
      "<SUF>",
      "▁<SUF>",
      "<|code_suffix|>",
      "<|suffix|>",
    ],
  },
  fim_mid: {
    older: "middle",
    ends: false,
    texts: [
      "<|fim_middle|>",
      "<fim-middle>",
      "<fim_middle>",
      "<｜fim▁end｜>",
      "<MID>",
      "▁<MID>",
      "<|code_middle|>",
      "<|middle|>",
    ],
  },
  fim_pad: {
    older: undefined,
    ends: true,
    texts: ["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"],
  },
  fim_rep: {
    older: undefined,
    ends: true,
    texts: ["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"],
  },
  fim_sep: { older: undefined, ends: true, texts: ["<|file_sep|>"] },
} as const;

/** The marks of gpt-oss: its answers are read by them. */
const shownTexts = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/**
 * Reads the roles. Tokens whose text makes them special become control tokens in `vocabulary`,
 * whatever kind the file gives them: files often get it wrong, and plain text must never turn into
 * the end of a turn.
 */
export function readRoles(
  metadata: Metadata,
  vocabulary: Vocabulary,
  defaults: RoleDefaults,
  warn: (message: string) => void,
): TokenRoles {
  const idAt = (role: string, fallback?: number): number | undefined =>
    readId(metadata, `tokenizer.ggml.${role}_token_id`, fallback, vocabulary, warn);
  const bosId = idAt("bos", defaults.bosId);
  const eosId = idAt("eos", defaults.eosId);
  const ends = new Set<number>();
  for (const [role, { older, ends: ending, texts }] of Object.entries(fillRoles)) {
    const named = idAt(role) ?? (older === undefined ? undefined : idAt(older));
    const id =
      named ??
      markControl(
        vocabulary,
        texts.find((text) => vocabulary.idOf(text) !== undefined),
      );
    if (ending && id !== undefined) ends.add(id);
  }
  for (const text of endTexts) {
    const id = markControl(vocabulary, text);
    if (id !== undefined) ends.add(id);
  }
  for (const id of [eosId, idAt("eot"), idAt("eom")]) if (id !== undefined) ends.add(id);
  const shown = new Set<number>();
  for (const text of shownTexts) {
    const id = markControl(vocabulary, text);
    if (id !== undefined) shown.add(id);
  }
  exceptions(vocabulary, ends, shown);
  return {
    bosId,
    eosId,
    unknownId: idAt("unknown", defaults.unknownId),
    addBos: wants(
      metadata,
      "bos",
      bosId,
      defaults.addBos === true,
      defaults.forceBos === true,
      warn,
    ),
    addEos: wants(metadata, "eos", eosId, false, false, warn),
    endOfGeneration: ends,
    shown,
  };
}

/** Families in which a token with the text of an end is none. */
function exceptions(vocabulary: Vocabulary, ends: Set<number>, shown: Set<number>): void {
  const ending = (text: string): number | undefined => {
    const id = vocabulary.idOf(text);
    return id !== undefined && ends.has(id) ? id : undefined;
  };
  // gpt-oss and Solar: <|end|> closes one of several messages of an answer.
  const end = ending("<|end|>");
  const calls = ending("<|call|>") ?? ending("<|calls|>");
  if (
    end !== undefined &&
    calls !== undefined &&
    (ending("<|return|>") ?? ending("<|flush|>")) !== undefined
  ) {
    ends.delete(end);
    shown.add(end);
  }
  // Gemma 4: </s> is an HTML tag.
  const tag = ending("</s>");
  if (tag !== undefined && ending("<|tool_response>") !== undefined) {
    ends.delete(tag);
    vocabulary.kinds[tag] = kinds.normal;
  }
}

function markControl(vocabulary: Vocabulary, text: string | undefined): number | undefined {
  const id = text === undefined ? undefined : vocabulary.idOf(text);
  if (id !== undefined) vocabulary.kinds[id] = kinds.control;
  return id;
}

/** How converters write -1 into an unsigned number: there is no such token. */
const noToken = 0xffff_ffff;

function readId(
  metadata: Metadata,
  key: string,
  fallback: number | undefined,
  vocabulary: Vocabulary,
  warn: (message: string) => void,
): number | undefined {
  const id = metadata.number(key) ?? fallback;
  if (id === undefined || id === -1 || id === noToken) return undefined;
  if (Number.isInteger(id) && id >= 0 && id < vocabulary.size) return id;
  if (metadata.has(key)) warn(`metadata ${key} is ${id}, which is no token; ignored`);
  return undefined;
}

function wants(
  metadata: Metadata,
  role: "bos" | "eos",
  id: number | undefined,
  fallback: boolean,
  force: boolean,
  warn: (message: string) => void,
): boolean {
  const key = `tokenizer.ggml.add_${role}_token`;
  const wanted = force || (metadata.boolean(key) ?? fallback);
  if (wanted && id === undefined) {
    if (metadata.has(key))
      warn(`metadata ${key} is true, but the file names no such token; ignored`);
    return false;
  }
  return wanted;
}
