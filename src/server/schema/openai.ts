/** Bodies of OpenAI's chat completions and completions. */
import * as v from "valibot";
import { flag, ignored, maybe, refused, samplingFields, stopField, text, whole } from "./field.ts";

const textPart = v.object({ type: v.literal("text"), text });
const refusalPart = v.object({ type: v.literal("refusal"), refusal: text });

const otherPart = v.pipe(
  v.looseObject({ type: text }),
  v.check(() => false, "is of a kind that this model cannot take: only text is supported"),
);

const parts = v.array(
  v.pipe(
    v.union([textPart, refusalPart, otherPart]),
    v.transform((part) => ("text" in part ? String(part.text) : "")),
  ),
);

/** Text, or parts of it, which become one text. */
const content = v.union(
  [
    text,
    v.pipe(
      parts,
      v.transform((list) => list.join("\n")),
    ),
  ],
  "must be a string or a list of text parts",
);

const toolCall = v.looseObject({
  id: maybe(text),
  type: maybe(v.literal("function", 'must be "function"')),
  function: v.looseObject({ name: text, arguments: v.optional(v.unknown()) }),
});

const speaker = { name: maybe(text) };

const message = v.variant(
  "role",
  [
    v.object({ role: v.literal("system"), content, ...speaker }),
    v.object({ role: v.literal("developer"), content, ...speaker }),
    v.object({ role: v.literal("user"), content, ...speaker }),
    v.object({
      role: v.literal("assistant"),
      content: maybe(content),
      ...speaker,
      reasoning_content: maybe(text),
      reasoning: maybe(text),
      tool_calls: maybe(v.array(toolCall, "must be a list")),
      refusal: maybe(text),
    }),
    v.object({ role: v.literal("tool"), content, tool_call_id: maybe(text), ...speaker }),
  ],
  "must be system, developer, user, assistant or tool",
);

const messagesField = v.pipe(
  v.array(message, "must be a list of messages"),
  v.nonEmpty("must not be empty"),
);

export type ApiMessage = v.InferOutput<typeof message>;

export const functionTool = v.looseObject({
  type: v.literal("function", 'must be "function"'),
  function: v.looseObject({
    name: v.pipe(text, v.regex(/^[\w.-]{1,64}$/, "must be a name of up to 64 letters")),
    description: maybe(text),
    parameters: maybe(v.record(v.string(), v.unknown(), "must be a JSON schema")),
  }),
});

const namedChoice = v.object({
  type: v.literal("function"),
  function: v.object({ name: text }),
});

const toolChoice = v.union(
  [v.picklist(["none", "auto", "required"]), namedChoice],
  'must be "none", "auto", "required" or name a function',
);

const responseFormat = v.variant(
  "type",
  [
    v.object({ type: v.literal("text") }),
    v.object({ type: v.literal("json_object") }),
    v.object({
      type: v.literal("json_schema"),
      json_schema: v.looseObject({ name: maybe(text), schema: v.unknown(), strict: maybe(flag) }),
    }),
  ],
  "must be text, json_object or json_schema",
);

/** Beyond OpenAI's: a grammar in GBNF, and a schema, as llama.cpp's server takes them. */
const shapeFields = {
  response_format: maybe(responseFormat),
  grammar: maybe(text),
  json_schema: maybe(v.record(v.string(), v.unknown(), "must be a JSON schema")),
} as const;

export type ShapeRequest = v.InferOutput<v.LooseObjectSchema<typeof shapeFields, undefined>>;

const streamFields = {
  stream: maybe(flag),
  stream_options: maybe(
    v.looseObject({ include_usage: maybe(flag), include_obfuscation: ignored }),
  ),
} as const;

export const chatCompletionBody = v.looseObject({
  model: maybe(text),
  messages: messagesField,
  ...samplingFields,
  ...streamFields,
  max_tokens: maybe(whole(1)),
  max_completion_tokens: maybe(whole(1)),
  n: maybe(whole(1, 16)),
  stop: stopField,
  logprobs: maybe(flag),
  top_logprobs: maybe(whole(0, 20)),
  tools: maybe(v.array(functionTool, "must be a list")),
  tool_choice: maybe(toolChoice),
  parallel_tool_calls: maybe(flag),
  ...shapeFields,
  reasoning_effort: maybe(
    v.picklist(
      ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
      "must be none, minimal, low, medium, high, xhigh or max",
    ),
  ),
  chat_template_kwargs: maybe(v.record(v.string(), v.unknown(), "must be an object")),
  continue_final_message: maybe(flag),
  modalities: refused("only text is made", [["text"]]),
  audio: refused("only text is made"),
  functions: refused("use tools"),
  function_call: refused("use tool_choice"),
  web_search_options: refused("offer a tool that searches", [{}]),
  prediction: ignored,
  user: ignored,
  metadata: ignored,
  store: ignored,
  service_tier: ignored,
  safety_identifier: ignored,
  prompt_cache_key: ignored,
  prompt_cache_retention: ignored,
  verbosity: ignored,
  cache_prompt: ignored,
});

export type ChatCompletionBody = v.InferOutput<typeof chatCompletionBody>;

const ids = v.array(whole(0));

/** One text or several, as strings or as token ids; one becomes a list of it. */
const textsOrIds = v.union(
  [
    v.pipe(
      text,
      v.transform((one) => [one]),
    ),
    v.pipe(
      ids,
      v.nonEmpty(),
      v.transform((one) => [one]),
    ),
    v.array(v.union([text, ids])),
  ],
  "must be a string, a list of token ids, or a list of these",
);

export const completionBody = v.looseObject({
  model: maybe(text),
  prompt: v.pipe(
    textsOrIds,
    v.nonEmpty("must not be empty"),
    v.maxLength(64, "must be at most 64 prompts"),
  ),
  ...samplingFields,
  ...streamFields,
  max_tokens: maybe(whole(1)),
  n: maybe(whole(1, 16)),
  best_of: maybe(whole(1, 16)),
  stop: stopField,
  echo: maybe(flag),
  logprobs: maybe(whole(0, 20)),
  suffix: refused("text cannot be filled in", [""]),
  ...shapeFields,
  user: ignored,
  cache_prompt: ignored,
});

export type CompletionBody = v.InferOutput<typeof completionBody>;

/** As OpenAI has it. */
export const embeddingInputsMax = 2048;

export const embeddingBody = v.looseObject({
  model: maybe(text),
  input: v.pipe(
    textsOrIds,
    v.nonEmpty("must not be empty"),
    v.maxLength(embeddingInputsMax, `must be at most ${embeddingInputsMax} texts`),
  ),
  encoding_format: maybe(v.picklist(["float", "base64"], "must be float or base64")),
  dimensions: maybe(whole(1)),
  user: ignored,
});

export const tokenizeBody = v.looseObject({
  content: text,
  special: maybe(flag),
  parse_special: maybe(flag),
  add_special: maybe(flag),
  with_pieces: maybe(flag),
});

export const detokenizeBody = v.looseObject({ tokens: v.array(whole(0), "must be a list of ids") });

export const templateBody = v.looseObject({
  messages: messagesField,
  tools: maybe(v.array(functionTool, "must be a list")),
  chat_template_kwargs: maybe(v.record(v.string(), v.unknown(), "must be an object")),
  add_generation_prompt: maybe(flag),
});
