/** Bodies of Ollama's API. */
import * as v from "valibot";
import { flag, ignored, maybe, number, refused, stopField, text, whole } from "./field.ts";
import { embeddingInputsMax, functionTool } from "./openai.ts";

const message = v.looseObject({
  role: v.picklist(
    ["system", "user", "assistant", "tool"],
    "must be system, user, assistant or tool",
  ),
  content: maybe(text),
  thinking: maybe(text),
  images: refused("only text is supported", [[]]),
  tool_calls: maybe(
    v.array(
      v.looseObject({
        function: v.looseObject({ name: text, arguments: v.record(v.string(), v.unknown()) }),
      }),
    ),
  ),
  tool_name: maybe(text),
});

export type OllamaMessage = v.InferOutput<typeof message>;

const options = v.looseObject({
  temperature: maybe(number(0, 100)),
  top_k: maybe(whole(-1)),
  top_p: maybe(number(0, 1)),
  min_p: maybe(number(0, 1)),
  seed: maybe(v.pipe(v.number(), v.integer())),
  num_predict: maybe(whole(-2)),
  repeat_penalty: maybe(number(0.01, 100)),
  presence_penalty: maybe(number(-2, 2)),
  frequency_penalty: maybe(number(-2, 2)),
  stop: stopField,
});

export type OllamaOptions = v.InferOutput<typeof options>;

const commonFields = {
  model: text,
  stream: maybe(flag),
  format: maybe(
    v.union(
      [v.picklist(["", "json"]), v.record(v.string(), v.unknown())],
      'must be "json" or a JSON schema',
    ),
  ),
  options: maybe(options),
  think: maybe(v.union([flag, v.picklist(["low", "medium", "high", "max"])])),
  keep_alive: ignored,
} as const;

export const ollamaChatBody = v.looseObject({
  ...commonFields,
  messages: v.array(message, "must be a list of messages"),
  tools: maybe(v.array(functionTool, "must be a list")),
});

export const ollamaGenerateBody = v.looseObject({
  ...commonFields,
  prompt: maybe(text),
  system: maybe(text),
  raw: maybe(flag),
  suffix: refused("text cannot be filled in", [""]),
  images: refused("only text is supported", [[]]),
  template: refused("the model's own is used", [""]),
  context: refused("send the conversation to /api/chat", [[]]),
});

export const ollamaEmbedBody = v.looseObject({
  model: text,
  input: v.union(
    [
      v.pipe(
        text,
        v.transform((one) => [one]),
      ),
      v.pipe(v.array(text), v.maxLength(embeddingInputsMax)),
    ],
    `must be a string or a list of up to ${embeddingInputsMax} strings`,
  ),
  dimensions: maybe(whole(1)),
  truncate: maybe(flag),
  options: ignored,
  keep_alive: ignored,
});

export const ollamaShowBody = v.looseObject({ model: maybe(text), name: maybe(text) });
