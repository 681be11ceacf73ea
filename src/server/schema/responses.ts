/** Bodies of OpenAI's responses. */
import * as v from "valibot";
import { flag, ignored, maybe, refused, samplingFields, text, whole } from "./field.ts";

const textPart = v.looseObject({
  type: v.picklist(
    ["input_text", "output_text", "text", "reasoning_text", "summary_text"],
    "is of a kind that this model cannot take: only text is supported",
  ),
  text,
});

const content = v.union(
  [
    text,
    v.pipe(
      v.array(textPart),
      v.transform((parts) => parts.map((part) => part.text).join("\n")),
    ),
  ],
  "must be a string or a list of text parts",
);

const messageItem = v.looseObject({
  type: maybe(v.literal("message")),
  role: v.picklist(
    ["user", "assistant", "system", "developer"],
    "must be user, assistant, system or developer",
  ),
  content,
});

const item = v.union(
  [
    v.looseObject({
      type: v.literal("function_call"),
      call_id: text,
      name: text,
      arguments: text,
    }),
    v.looseObject({ type: v.literal("function_call_output"), call_id: text, output: content }),
    v.looseObject({ type: v.literal("reasoning"), content: maybe(content) }),
    messageItem,
  ],
  "must be a message, function_call, function_call_output or reasoning",
);

export type InputItem = v.InferOutput<typeof item>;

const tool = v.looseObject({
  type: v.literal("function", 'must be "function": there are no tools on the server\'s side'),
  name: v.pipe(text, v.regex(/^[\w.-]{1,64}$/, "must be a name of up to 64 letters")),
  description: maybe(text),
  parameters: maybe(v.record(v.string(), v.unknown(), "must be a JSON schema")),
  strict: maybe(flag),
});

const format = v.variant(
  "type",
  [
    v.looseObject({ type: v.literal("text") }),
    v.looseObject({ type: v.literal("json_object") }),
    v.looseObject({ type: v.literal("json_schema"), schema: v.unknown() }),
  ],
  "must be text, json_object or json_schema",
);

const { temperature, top_p, top_k, min_p, seed, presence_penalty, frequency_penalty } =
  samplingFields;

export const responsesBody = v.looseObject({
  model: maybe(text),
  input: v.union(
    [
      v.pipe(
        text,
        v.transform((one): InputItem[] => [{ type: "message", role: "user", content: one }]),
      ),
      v.pipe(v.array(item), v.nonEmpty("must not be empty")),
    ],
    "must be a string or a list of items",
  ),
  instructions: maybe(text),
  ...{ temperature, top_p, top_k, min_p, seed, presence_penalty, frequency_penalty },
  max_output_tokens: maybe(whole(1)),
  stream: maybe(flag),
  tools: maybe(v.array(tool, "must be a list")),
  tool_choice: maybe(
    v.union(
      [
        v.picklist(["none", "auto", "required"]),
        v.looseObject({ type: v.literal("function"), name: text }),
      ],
      "must be none, auto, required or name a function",
    ),
  ),
  parallel_tool_calls: maybe(flag),
  text: maybe(v.looseObject({ format: maybe(format) })),
  reasoning: maybe(v.looseObject({ effort: maybe(text) })),
  previous_response_id: refused("responses are not stored; send the whole conversation"),
  conversation: refused("conversations are not stored; send all of it"),
  prompt: refused("there are no stored prompts; send the input"),
  background: refused("responses are made while the client waits", [false]),
  truncation: refused("a long conversation is not cut", ["disabled"]),
  top_logprobs: refused("use /v1/chat/completions", [0]),
  max_tool_calls: ignored,
  store: ignored,
  include: ignored,
  metadata: ignored,
  user: ignored,
  service_tier: ignored,
  safety_identifier: ignored,
  prompt_cache_key: ignored,
  stream_options: ignored,
});

export type ResponsesBody = v.InferOutput<typeof responsesBody>;
