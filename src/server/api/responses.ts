/** POST /v1/responses: text and tools; nothing is stored. */
import type { AnswerShape } from "../../chat/shape/answer-shape.ts";
import { invariant } from "../../errors.ts";
import { invalid } from "../api-error.ts";
import { chatWork, type ToolChoice } from "../chat-work.ts";
import { chatRequest } from "../conversation.ts";
import type { Exchange } from "../exchange.ts";
import type { Job } from "../job.ts";
import type { Finish } from "../protocol.ts";
import { checkBody } from "../schema/field.ts";
import type { ApiMessage } from "../schema/openai.ts";
import { responsesBody, type InputItem, type ResponsesBody } from "../schema/responses.ts";
import { Sections, type Section, type SectionEvent } from "../sections.ts";
import { event, streamResponse } from "../stream.ts";
import { newId, openaiStream } from "./openai-shape.ts";

export async function responses(exchange: Exchange, body: unknown): Promise<Response> {
  const { service } = exchange;
  const { value, unknown } = checkBody(responsesBody, body);
  exchange.useModel(value.model);
  service.noteUnknown(exchange.route, unknown);
  const { tool_choice: choice, tools = [] } = value;
  const work = chatWork(exchange, {
    request: chatRequest({
      messages: messagesOf(value),
      tools:
        choice === "none"
          ? []
          : tools.map(({ type, ...definition }) => ({ type, function: definition })),
      reasoningEffort: value.reasoning?.effort,
    }),
    choice: choiceOf(choice),
    sampling: value,
    maxTokens: value.max_output_tokens,
    shape: shapeOf(value),
  });
  const [job] = await exchange.start([work]);
  invariant(job !== undefined, "a job for each work");
  const draft = new Draft(exchange, value);
  if (value.stream === true)
    return streamResponse(exchange, events(exchange, job, draft), openaiStream);
  const sections = new Sections();
  const pieces = exchange.read(job);
  for (;;) {
    const next = await pieces.next();
    if (next.done !== true) {
      for (const part of next.value.parts) sections.add(part);
    } else return Response.json(draft.complete(sections.list, next.value));
  }
}

function choiceOf(choice: ResponsesBody["tool_choice"]): ToolChoice {
  if (choice === undefined || choice === "none" || choice === "auto") return "auto";
  return choice === "required" ? choice : { name: choice.name };
}

function shapeOf({ text }: ResponsesBody): AnswerShape | undefined {
  const format = text?.format;
  if (format === undefined || format.type === "text") return undefined;
  return format.type === "json_object"
    ? { type: "json" }
    : { type: "schema", schema: format.schema };
}

/** Calls and thoughts that follow each other are one message of the assistant. */
function messagesOf({ input, instructions }: ResponsesBody): ApiMessage[] {
  const messages: ApiMessage[] =
    instructions === undefined ? [] : [{ role: "system", content: instructions, name: undefined }];
  for (const item of input) {
    const next = messageOf(item);
    const last = messages.at(-1);
    if (next.role === "assistant" && last?.role === "assistant") {
      messages[messages.length - 1] = joined(last, next);
    } else messages.push(next);
  }
  if (messages.at(-1)?.role === "system" && messages.length === 1) {
    throw invalid("input says nothing", "input");
  }
  return messages;
}

type Assistant = ApiMessage & { role: "assistant" };

function messageOf(item: InputItem): ApiMessage {
  switch (item.type) {
    case "function_call":
      return {
        ...silent,
        tool_calls: [
          {
            id: item.call_id,
            type: "function",
            function: { name: item.name, arguments: item.arguments },
          },
        ],
      };
    case "function_call_output":
      return { role: "tool", content: item.output, tool_call_id: item.call_id, name: undefined };
    case "reasoning":
      return { ...silent, reasoning_content: item.content };
    default:
      return item.role === "assistant"
        ? { ...silent, content: item.content }
        : { role: item.role, content: item.content, name: undefined };
  }
}

const silent: Assistant = {
  role: "assistant",
  content: undefined,
  name: undefined,
  reasoning: undefined,
  reasoning_content: undefined,
  refusal: undefined,
  tool_calls: undefined,
};

function joined(one: Assistant, other: Assistant): Assistant {
  const texts = [one.content, other.content].filter((text) => text !== undefined);
  const calls = [...(one.tool_calls ?? []), ...(other.tool_calls ?? [])];
  return {
    ...one,
    content: texts.length === 0 ? undefined : texts.join("\n"),
    reasoning_content: one.reasoning_content ?? other.reasoning_content,
    tool_calls: calls.length === 0 ? undefined : calls,
  };
}

/** The response while it is made. */
class Draft {
  readonly #head: object;
  readonly #ids = new Map<number, string>();

  constructor({ modelId }: Exchange, body: ResponsesBody) {
    const { tools = [], instructions = null, max_output_tokens: maxTokens = null } = body;
    this.#head = {
      id: newId("resp_"),
      object: "response",
      created_at: Math.floor(Date.now() / 1000),
      model: modelId,
      instructions,
      max_output_tokens: maxTokens,
      parallel_tool_calls: body.parallel_tool_calls ?? true,
      previous_response_id: null,
      store: false,
      temperature: body.temperature ?? null,
      top_p: body.top_p ?? null,
      text: body.text ?? { format: { type: "text" } },
      tool_choice: body.tool_choice ?? "auto",
      tools,
      truncation: "disabled",
      metadata: {},
    };
  }

  begin(): object {
    return this.#with("in_progress", [], null, null);
  }

  complete(sections: readonly Section[], finish: Finish): object {
    const { reason, promptTokens, cachedTokens, tokens, reasoningTokens } = finish;
    const status = reason === "length" ? "incomplete" : "completed";
    const usage = {
      input_tokens: promptTokens,
      input_tokens_details: { cached_tokens: cachedTokens },
      output_tokens: tokens,
      output_tokens_details: { reasoning_tokens: reasoningTokens },
      total_tokens: promptTokens + tokens,
    };
    const details = reason === "length" ? { reason: "max_output_tokens" } : null;
    return this.#with(
      status,
      sections.map((section) => this.item(section, "completed")),
      usage,
      details,
    );
  }

  item(section: Section, status: "in_progress" | "completed"): object {
    const { kind, id, name, text } = section;
    const own = this.idOf(section);
    const isDone = status === "completed";
    switch (kind) {
      case "text":
        return {
          id: own,
          type: "message",
          status,
          role: "assistant",
          content: isDone ? [textPart(text)] : [],
        };
      case "reasoning":
        return {
          id: own,
          type: "reasoning",
          summary: [],
          content: isDone ? [{ type: "reasoning_text", text }] : [],
          status,
        };
      case "call":
        return { id: own, type: "function_call", status, call_id: id, name, arguments: text };
    }
  }

  idOf({ index, kind }: Section): string {
    const prefixes = { text: "msg_", reasoning: "rs_", call: "fc_" };
    const id = this.#ids.get(index) ?? newId(prefixes[kind]);
    this.#ids.set(index, id);
    return id;
  }

  #with(status: string, output: readonly object[], usage: object | null, details: object | null) {
    return {
      ...this.#head,
      status,
      error: null,
      incomplete_details: details,
      output,
      usage,
    };
  }
}

function textPart(text: string) {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

async function* events(exchange: Exchange, job: Job, draft: Draft): AsyncGenerator<string, void> {
  let count = 0;
  const send = (type: string, fields: object) =>
    event({ type, sequence_number: count++, ...fields }, type);
  yield send("response.created", { response: draft.begin() });
  yield send("response.in_progress", { response: draft.begin() });
  const sections = new Sections();
  const pieces = exchange.read(job);
  for (;;) {
    const next = await pieces.next();
    const changes =
      next.done === true ? sections.end() : next.value.parts.flatMap((part) => sections.add(part));
    for (const change of changes) {
      for (const [type, fields] of framesOf(change, draft)) yield send(type, fields);
    }
    if (next.done !== true) continue;
    const type = next.value.reason === "length" ? "response.incomplete" : "response.completed";
    yield send(type, { response: draft.complete(sections.list, next.value) });
    return;
  }
}

/** The deltas of each kind of section. */
const kinds = {
  text: "response.output_text",
  reasoning: "response.reasoning_text",
  call: "response.function_call_arguments",
} as const;

function* framesOf(change: SectionEvent, draft: Draft): Generator<[string, object]> {
  const { section } = change;
  const { kind, text, index } = section;
  const item = { output_index: index, item_id: draft.idOf(section) };
  const place = kind === "call" ? item : { ...item, content_index: 0 };
  const part =
    kind === "text" ? textPart : (all: string) => ({ type: "reasoning_text", text: all });
  switch (change.type) {
    case "open":
      yield [
        "response.output_item.added",
        { output_index: index, item: draft.item(section, "in_progress") },
      ];
      if (kind !== "call") yield ["response.content_part.added", { ...place, part: part("") }];
      return;
    case "delta":
      yield [`${kinds[kind]}.delta`, { ...place, delta: change.text }];
      return;
    case "close": {
      const all = kind === "call" ? { name: section.name, arguments: text } : { text };
      yield [`${kinds[kind]}.done`, { ...place, ...all }];
      if (kind !== "call") yield ["response.content_part.done", { ...place, part: part(text) }];
      yield [
        "response.output_item.done",
        { output_index: index, item: draft.item(section, "completed") },
      ];
    }
  }
}
