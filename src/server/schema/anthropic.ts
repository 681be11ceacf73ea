/** Bodies of Anthropic's messages. */
import * as v from "valibot";
import { flag, ignored, maybe, number, refused, text, whole } from "./field.ts";

const textBlock = v.looseObject({ type: v.literal("text"), text });

const blocksOrText = v.union(
  [text, v.array(textBlock)],
  "must be a string or a list of text blocks",
);

const block = v.variant(
  "type",
  [
    textBlock,
    v.looseObject({ type: v.literal("thinking"), thinking: text }),
    v.looseObject({ type: v.literal("redacted_thinking") }),
    v.looseObject({
      type: v.literal("tool_use"),
      id: text,
      name: text,
      input: v.record(v.string(), v.unknown()),
    }),
    v.looseObject({
      type: v.literal("tool_result"),
      tool_use_id: text,
      content: maybe(blocksOrText),
      is_error: maybe(flag),
    }),
  ],
  "is a block that this model cannot take: text, thinking, tool_use and tool_result are supported",
);

export type Block = v.InferOutput<typeof block>;

const message = v.looseObject({
  role: v.picklist(["user", "assistant", "system"], "must be user or assistant"),
  content: v.union([text, v.array(block)], "must be a string or a list of blocks"),
});

export type AnthropicMessage = v.InferOutput<typeof message>;

const tool = v.looseObject({
  type: maybe(v.literal("custom", "must be custom: there are no tools on the server's side")),
  name: v.pipe(text, v.regex(/^[\w.-]{1,128}$/, "must be a name")),
  description: maybe(text),
  input_schema: v.record(v.string(), v.unknown(), "must be a JSON schema"),
});

const conversationFields = {
  model: text,
  messages: v.pipe(v.array(message, "must be a list of messages"), v.nonEmpty("must not be empty")),
  system: maybe(blocksOrText),
  tools: maybe(v.array(tool, "must be a list")),
  tool_choice: maybe(
    v.looseObject({
      type: v.picklist(["auto", "any", "tool", "none"], "must be auto, any, tool or none"),
      name: maybe(text),
      disable_parallel_tool_use: maybe(flag),
    }),
  ),
  thinking: maybe(
    v.looseObject({
      type: v.picklist(
        ["enabled", "disabled", "adaptive"],
        "must be enabled, disabled or adaptive",
      ),
    }),
  ),
} as const;

export const messagesBody = v.looseObject({
  ...conversationFields,
  max_tokens: whole(1),
  stop_sequences: maybe(v.pipe(v.array(text), v.maxLength(16, "must be at most 16"))),
  stream: maybe(flag),
  temperature: maybe(number(0, 100)),
  top_p: maybe(number(0, 1)),
  top_k: maybe(whole(-1)),
  mcp_servers: refused("only tools of the request can be called", [[]]),
  container: refused("there are no containers"),
  metadata: ignored,
  service_tier: ignored,
  cache_control: ignored,
  inference_geo: ignored,
});

export type MessagesBody = v.InferOutput<typeof messagesBody>;

export const countBody = v.looseObject(conversationFields);
