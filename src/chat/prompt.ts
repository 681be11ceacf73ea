/** From what a user says to the token ids that the model is fed. */
import { UserError } from "../errors.ts";
import type { Metadata } from "../gguf/metadata.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { chatMlTemplate } from "./chatml.ts";
import type { Segment } from "./jinja/text.ts";
import { TemplateError } from "./template-error.ts";
import { ChatTemplate } from "./template.ts";

/** A model's template, or why another one stands in for it. */
export interface ResolvedTemplate {
  readonly template: ChatTemplate;
  /** Where it came from. */
  readonly source: "given" | "model" | "fallback";
  /** What was wrong with the model's own, if it has one and it cannot be used. */
  readonly problem: string | undefined;
}

/**
 * The chat template of a model file, or `given` instead of it; undefined where there is none. A
 * model's template that cannot be parsed is replaced by ChatML. Throws a "usage" error for a bad
 * `given`.
 */
export function resolveTemplate(
  metadata: Metadata,
  tokenizer: Tokenizer | undefined,
  given?: string,
): ResolvedTemplate | undefined {
  const variables = {
    ...tokenVariable("bos_token", tokenizer, tokenizer?.bosId),
    ...tokenVariable("eos_token", tokenizer, tokenizer?.eosId),
  };
  if (given !== undefined) {
    try {
      return { template: new ChatTemplate(given, variables), source: "given", problem: undefined };
    } catch (error) {
      throw templateFailure(error);
    }
  }
  const own = metadata.string("tokenizer.chat_template");
  if (own === undefined) return undefined;
  try {
    return { template: new ChatTemplate(own, variables), source: "model", problem: undefined };
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    const template = new ChatTemplate(chatMlTemplate, variables);
    return { template, source: "fallback", problem: error.message };
  }
}

function tokenVariable(name: string, tokenizer: Tokenizer | undefined, id: number | undefined) {
  return tokenizer === undefined || id === undefined ? {} : { [name]: tokenizer.tokenText(id) };
}

/** A template that refused its input, as an error for people; anything else passes through. */
export function templateFailure(
  error: unknown,
  remedy = "check the messages, or give another template with --template or none with --raw",
): unknown {
  if (!(error instanceof TemplateError)) return error;
  const place = error.kind === "raised" || error.line === undefined ? "" : ` (line ${error.line})`;
  return new UserError("usage", `the chat template refused this: ${error.message}${place}`, remedy);
}

/** The ids of a rendered template; user text never becomes special tokens. */
export function encodeSegments(tokenizer: Tokenizer, segments: readonly Segment[]): number[] {
  return withBos(tokenizer, tokenizer.encode(segments));
}

/** The ids of a text as it stands, special tokens included. */
export function encodeRaw(tokenizer: Tokenizer, text: string): number[] {
  return withBos(tokenizer, tokenizer.encode(text, { special: true }));
}

/** The ids of a text to embed: special tokens in it are plain text. EOS if the file says so. */
export function encodeDocument(tokenizer: Tokenizer, text: string): number[] {
  const ids = withBos(tokenizer, tokenizer.encode(text));
  const { addEos, eosId } = tokenizer;
  return addEos && eosId !== undefined ? [...ids, eosId] : ids;
}

/** BOS if the file says so; a template may have written it already. */
function withBos({ addBos, bosId }: Tokenizer, ids: number[]): number[] {
  return addBos && bosId !== undefined && ids[0] !== bosId ? [bosId, ...ids] : ids;
}
