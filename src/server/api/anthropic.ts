/** Anthropic's API: POST /v1/messages and /v1/messages/count_tokens. */
import { invariant } from "../../errors.ts";
import type { ApiError } from "../api-error.ts";
import { chatWork, type ToolChoice } from "../chat-work.ts";
import { chatRequest } from "../conversation.ts";
import type { Exchange } from "../exchange.ts";
import type { Job } from "../job.ts";
import type { Finish } from "../protocol.ts";
import {
  countBody,
  messagesBody,
  type AnthropicMessage,
  type Block,
  type MessagesBody,
} from "../schema/anthropic.ts";
import { checkBody } from "../schema/field.ts";
import type { ApiMessage } from "../schema/openai.ts";
import { Sections, type Section, type SectionEvent } from "../sections.ts";
import { event, streamResponse, type StreamFormat } from "../stream.ts";
import { newId } from "./openai-shape.ts";

export async function messages(exchange: Exchange, body: unknown): Promise<Response> {
  const { service } = exchange;
  const { value, unknown } = checkBody(messagesBody, body);
  exchange.useModel(value.model);
  service.noteUnknown(exchange.route, unknown);
  const { max_tokens: maxTokens, stop_sequences: stop, temperature, top_p, top_k } = value;
  const work = chatWork(exchange, {
    request: requestOf(value),
    choice: choiceOf(value.tool_choice),
    sampling: { temperature, top_p, top_k },
    maxTokens,
    stop,
  });
  const [job] = await exchange.start([work]);
  invariant(job !== undefined, "a job for each work");
  const head = {
    id: newId("msg_"),
    type: "message",
    role: "assistant",
    model: exchange.modelId,
  };
  if (value.stream === true) {
    return streamResponse(exchange, events(exchange, job, head), anthropicStream);
  }
  const sections = new Sections();
  const pieces = exchange.read(job);
  for (;;) {
    const next = await pieces.next();
    if (next.done !== true) {
      for (const part of next.value.parts) sections.add(part);
      continue;
    }
    return Response.json({
      ...head,
      content: sections.list.map(blockOf),
      ...stopOf(next.value, sections.callCount),
      usage: usageOf(next.value),
    });
  }
}

function choiceOf(choice: MessagesBody["tool_choice"]): ToolChoice {
  if (choice?.type === "any") return "required";
  return choice?.type === "tool" ? { name: choice.name ?? "" } : "auto";
}

export async function countTokens(exchange: Exchange, body: unknown): Promise<Response> {
  const { service } = exchange;
  const { value } = checkBody(countBody, body);
  exchange.useModel(value.model);
  // Each model has tokens of its own.
  await exchange.load();
  const reply = await service.host.ask({ type: "template", request: requestOf(value) });
  invariant(reply.type === "prompt", "a prompt is the reply to messages");
  return Response.json({ input_tokens: reply.tokenCount });
}

export function anthropicError({ message, type, status, details }: ApiError, { id }: Exchange) {
  const known = ["invalid_request_error", "authentication_error", "permission_error"];
  const other = { 404: "not_found_error", 413: "request_too_large", 503: "overloaded_error" };
  const shown = (other as Record<number, string>)[status] ?? "api_error";
  const { fields, code } = details;
  return {
    type: "error",
    error: {
      type: known.includes(type) && status !== 413 ? type : shown,
      message,
      ...(code !== undefined && { code }),
      ...fields,
    },
    request_id: id,
  };
}

const anthropicStream: StreamFormat = {
  contentType: "text/event-stream; charset=utf-8",
  ping: event({ type: "ping" }, "ping"),
  error: (error, exchange) => event(anthropicError(error, exchange), "error"),
};

type Conversation = Pick<
  MessagesBody,
  "messages" | "system" | "tools" | "tool_choice" | "thinking"
>;

function requestOf(body: Conversation) {
  const { system, tools = [], tool_choice: choice, thinking } = body;
  const last = body.messages.at(-1);
  // An answer that the client has begun.
  const prefix = last?.role === "assistant" ? textOf(last.content) : undefined;
  const said = prefix === undefined ? body.messages : body.messages.slice(0, -1);
  const before: ApiMessage[] =
    system === undefined ? [] : [{ role: "system", content: textOf(system), name: undefined }];
  return chatRequest({
    messages: [...before, ...said.flatMap(toApi)],
    tools:
      choice?.type === "none"
        ? []
        : tools.map(({ name, description, input_schema: parameters }) => ({
            type: "function",
            function: { name, ...(description !== undefined && { description }), parameters },
          })),
    thinking: thinking === undefined ? "auto" : thinking.type === "disabled" ? "off" : "on",
    prefix,
  });
}

function textOf(content: string | readonly { readonly type: string }[]): string {
  if (typeof content === "string") return content;
  return content
    .map((block) => (block.type === "text" ? (block as { text?: string }).text : undefined))
    .filter((text) => text !== undefined)
    .join("\n");
}

/** Results of tools are messages of their own, before what else the user says. */
function toApi({ role, content }: AnthropicMessage): ApiMessage[] {
  const blocks: readonly Block[] =
    typeof content === "string" ? [{ type: "text", text: content }] : content;
  const text = textOf(blocks);
  if (role === "assistant") return [assistantOf(blocks, text)];
  const results = blocks.flatMap((block): ApiMessage[] =>
    block.type === "tool_result"
      ? [
          {
            role: "tool",
            content: textOf(block.content ?? ""),
            tool_call_id: block.tool_use_id,
            name: undefined,
          },
        ]
      : [],
  );
  const speaks = results.length === 0 || text !== "";
  return speaks ? [...results, { role, content: text, name: undefined }] : results;
}

function assistantOf(blocks: readonly Block[], text: string): ApiMessage {
  const thoughts = blocks.flatMap((block) => (block.type === "thinking" ? [block.thinking] : []));
  const calls = blocks.flatMap((block) =>
    block.type === "tool_use"
      ? [
          {
            id: block.id,
            type: "function" as const,
            function: { name: block.name, arguments: block.input },
          },
        ]
      : [],
  );
  return {
    role: "assistant",
    content: text,
    name: undefined,
    reasoning: undefined,
    refusal: undefined,
    reasoning_content: thoughts.length === 0 ? undefined : thoughts.join("\n"),
    tool_calls: calls.length === 0 ? undefined : calls,
  };
}

function blockOf({ kind, id, name, text }: Section) {
  switch (kind) {
    case "text":
      return { type: "text", text, citations: null };
    case "reasoning":
      return { type: "thinking", thinking: text, signature: "" };
    case "call":
      return { type: "tool_use", id, name, input: JSON.parse(text || "{}") as unknown };
  }
}

function stopOf({ reason, stopString }: Finish, callCount: number) {
  if (reason === "length") return { stop_reason: "max_tokens", stop_sequence: null };
  if (stopString !== undefined) return { stop_reason: "stop_sequence", stop_sequence: stopString };
  return { stop_reason: callCount > 0 ? "tool_use" : "end_turn", stop_sequence: null };
}

function usageOf({ promptTokens, cachedTokens, tokens }: Finish) {
  return {
    input_tokens: promptTokens - cachedTokens,
    output_tokens: tokens,
    cache_read_input_tokens: cachedTokens,
    cache_creation_input_tokens: 0,
  };
}

async function* events(exchange: Exchange, job: Job, head: object): AsyncGenerator<string, void> {
  const send = (type: string, fields: object) => event({ type, ...fields }, type);
  yield send("message_start", {
    message: {
      ...head,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: job.promptTokens,
        output_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
      },
    },
  });
  const sections = new Sections();
  const pieces = exchange.read(job);
  for (;;) {
    const next = await pieces.next();
    const changes =
      next.done === true ? sections.end() : next.value.parts.flatMap((part) => sections.add(part));
    for (const change of changes) {
      const [type, fields] = frameOf(change);
      yield send(type, { index: change.section.index, ...fields });
    }
    if (next.done !== true) continue;
    yield send("message_delta", {
      delta: stopOf(next.value, sections.callCount),
      usage: usageOf(next.value),
    });
    yield send("message_stop", {});
    return;
  }
}

function frameOf(change: SectionEvent): [string, object] {
  const { kind, id, name } = change.section;
  switch (change.type) {
    case "open": {
      const empty = blockOf({ ...change.section, text: "" });
      const block = kind === "call" ? { type: "tool_use", id, name, input: {} } : empty;
      return ["content_block_start", { content_block: block }];
    }
    case "delta": {
      const { text } = change;
      const deltas = {
        text: { type: "text_delta", text },
        reasoning: { type: "thinking_delta", thinking: text },
        call: { type: "input_json_delta", partial_json: text },
      };
      return ["content_block_delta", { delta: deltas[kind] }];
    }
    case "close":
      return ["content_block_stop", {}];
  }
}
