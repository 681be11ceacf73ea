/** Ollama's API: POST /api/chat and /api/generate, and what its clients ask first. */
import { AnswerCollector, type Answer, type Part } from "../../chat/answer.ts";
import type { AnswerShape } from "../../chat/shape/answer-shape.ts";
import { invariant } from "../../errors.ts";
import type { ApiError } from "../api-error.ts";
import { chatWork } from "../chat-work.ts";
import { chatRequest } from "../conversation.ts";
import { embed } from "../embedding.ts";
import type { Exchange } from "../exchange.ts";
import type { Job } from "../job.ts";
import type { Finish, Work } from "../protocol.ts";
import { checkBody } from "../schema/field.ts";
import {
  ollamaChatBody,
  ollamaEmbedBody,
  ollamaGenerateBody,
  ollamaShowBody,
  type OllamaMessage,
  type OllamaOptions,
} from "../schema/ollama.ts";
import type { ApiMessage } from "../schema/openai.ts";
import type { Service } from "../service.ts";
import type { OfferedModel } from "../shelf.ts";
import { streamResponse, type StreamFormat } from "../stream.ts";
import { samplingOf } from "../work-request.ts";

/** What an answer, or a piece of it, looks like. */
type Shape = (answer: Answer) => object;

export async function ollamaChat(exchange: Exchange, body: unknown): Promise<Response> {
  const { value, unknown } = checkBody(ollamaChatBody, body);
  const { service } = exchange;
  exchange.useModel(value.model);
  service.noteUnknown(exchange.route, unknown);
  // That is how clients load a model before they use it.
  if (value.messages.length === 0) return loaded(exchange, { message: emptyMessage });
  const work = chatWork(exchange, {
    request: chatRequest({
      messages: value.messages.map(toApi),
      tools: value.tools,
      ...thinkingOf(value.think),
    }),
    ...limitsOf(value.options),
    shape: shapeOf(value.format),
  });
  return respond(exchange, work, value.stream !== false, ({ text, reasoning, toolCalls }) => ({
    message: {
      role: "assistant",
      content: text,
      ...(reasoning !== "" && { thinking: reasoning }),
      ...(toolCalls.length > 0 && {
        tool_calls: toolCalls.map(({ id, name, arguments: args }) => ({
          id,
          function: { name, arguments: JSON.parse(args) as unknown },
        })),
      }),
    },
  }));
}

export async function ollamaGenerate(exchange: Exchange, body: unknown): Promise<Response> {
  const { value, unknown } = checkBody(ollamaGenerateBody, body);
  const { service } = exchange;
  exchange.useModel(value.model);
  service.noteUnknown(exchange.route, unknown);
  const { prompt = "", system, raw = false, format } = value;
  if (prompt === "") return loaded(exchange, { response: "" });
  const limits = limitsOf(value.options);
  const work: Work = raw
    ? {
        type: "answer",
        prompt: { type: "text", text: prompt },
        client: exchange.client,
        sampling: samplingOf(limits.sampling, service.options.sampling),
        maxTokens: limits.maxTokens,
        stop: limits.stop ?? [],
        ignoreEos: false,
        logprobs: undefined,
        shape: shapeOf(format),
      }
    : chatWork(exchange, {
        request: chatRequest({
          messages: [
            ...(system === undefined ? [] : [toApi({ role: "system", content: system })]),
            toApi({ role: "user", content: prompt }),
          ],
          ...thinkingOf(value.think),
        }),
        ...limits,
        shape: shapeOf(format),
      });
  return respond(exchange, work, value.stream !== false, ({ text, reasoning }) => ({
    response: text,
    ...(reasoning !== "" && { thinking: reasoning }),
  }));
}

/** POST /api/embed */
export async function ollamaEmbed(exchange: Exchange, body: unknown): Promise<Response> {
  const { value, unknown } = checkBody(ollamaEmbedBody, body);
  const { service } = exchange;
  exchange.useModel(value.model);
  service.noteUnknown(exchange.route, unknown);
  const started = performance.now();
  const { dimensions, truncate: truncates = true } = value;
  const made = await embed(exchange, value.input, { dimensions, truncates });
  return Response.json({
    model: exchange.modelId,
    embeddings: made.vectors.map((vector) => [...vector]),
    total_duration: nanoseconds(performance.now() - started),
    load_duration: 0,
    prompt_eval_count: made.promptTokens,
  });
}

/** GET /api/version */
export function ollamaVersion({ service }: Exchange): Response {
  return Response.json({ version: service.options.version });
}

/** GET /api/tags */
export function ollamaTags({ service }: Exchange): Response {
  const models = service.options.shelf.list();
  return Response.json({ models: models.map((one) => describeModel(service, one)) });
}

/** GET /api/ps */
export function ollamaPs({ service }: Exchange): Response {
  const { facts, deviceBytes, model } = service.host;
  const loaded = {
    ...describeModel(service, model),
    size_vram: deviceBytes,
    context_length: facts?.contextTokens ?? 0,
  };
  return Response.json({ models: deviceBytes === 0 ? [] : [loaded] });
}

/** POST /api/show */
export function ollamaShow(exchange: Exchange, body: unknown): Response {
  const { service } = exchange;
  const { value } = checkBody(ollamaShowBody, body);
  const model = exchange.useModel(value.model ?? value.name);
  // More is known of the one that is loaded.
  const facts = model.id === service.host.model.id ? service.host.requireReady() : undefined;
  return Response.json({
    details: describeModel(service, model).details,
    template: facts?.template ?? "",
    capabilities: ["completion", "embedding"],
    model_info:
      facts === undefined
        ? {}
        : {
            "general.architecture": facts.architecture,
            "general.name": facts.name,
            [`${facts.architecture}.context_length`]: facts.trainedContextTokens,
            [`${facts.architecture}.embedding_length`]: facts.width,
          },
    modified_at: timeOf(service.startedS * 1000),
  });
}

export function ollamaError({ message, details }: ApiError) {
  return { error: message, ...(details.code !== undefined && { code: details.code }) };
}

const lines: StreamFormat = {
  contentType: "application/x-ndjson",
  ping: undefined,
  error: (error) => `${JSON.stringify(ollamaError(error))}\n`,
};

const emptyMessage = { role: "assistant", content: "" };

function describeModel({ host, startedS }: Service, { id, sizeBytes }: OfferedModel) {
  const facts = id === host.model.id ? host.facts : undefined;
  const family = facts?.architecture ?? "";
  return {
    name: id,
    model: id,
    modified_at: timeOf(startedS * 1000),
    size: sizeBytes ?? facts?.deviceBytes ?? 0,
    digest: "",
    details: {
      parent_model: "",
      format: "gguf",
      family,
      families: [family],
      parameter_size: "",
      quantization_level: "",
    },
  };
}

async function loaded(exchange: Exchange, fields: object): Promise<Response> {
  await exchange.load();
  const model = exchange.modelId;
  const createdAt = timeOf(Date.now());
  return Response.json({
    model,
    created_at: createdAt,
    ...fields,
    done: true,
    done_reason: "load",
  });
}

async function respond(
  exchange: Exchange,
  work: Work,
  isStreamed: boolean,
  shape: Shape,
): Promise<Response> {
  const [job] = await exchange.start([work]);
  invariant(job !== undefined, "a job for each work");
  if (isStreamed) return streamResponse(exchange, chunks(exchange, job, shape), lines);
  const collector = new AnswerCollector();
  const pieces = exchange.read(job);
  for (;;) {
    const next = await pieces.next();
    if (next.done !== true) {
      for (const part of next.value.parts) collector.add(part);
    } else return Response.json(lastOf(exchange, shape(collector.answer), next.value));
  }
}

/** Calls come whole, when they are complete. */
async function* chunks(exchange: Exchange, job: Job, shape: Shape): AsyncGenerator<string, void> {
  const model = exchange.modelId;
  const pieces = exchange.read(job);
  let call = new AnswerCollector();
  const answerOf = (part: Part): Answer | undefined => {
    if (part.type === "text") return { text: part.text, reasoning: "", toolCalls: [] };
    if (part.type === "reasoning") return { text: "", reasoning: part.text, toolCalls: [] };
    call.add(part);
    if (part.type !== "call_end") return undefined;
    const { answer } = call;
    call = new AnswerCollector();
    return answer;
  };
  for (;;) {
    const next = await pieces.next();
    if (next.done === true) {
      const empty = shape({ text: "", reasoning: "", toolCalls: [] });
      yield `${JSON.stringify(lastOf(exchange, empty, next.value))}\n`;
      return;
    }
    for (const part of next.value.parts) {
      const answer = answerOf(part);
      if (answer === undefined) continue;
      const line = { model, created_at: timeOf(Date.now()), ...shape(answer), done: false };
      yield `${JSON.stringify(line)}\n`;
    }
  }
}

function lastOf({ modelId }: Exchange, fields: object, finish: Finish) {
  const { queueMs, prefillMs, decodeMs, promptTokens, tokens, reason } = finish;
  return {
    model: modelId,
    created_at: timeOf(Date.now()),
    ...fields,
    done: true,
    done_reason: reason === "length" ? "length" : "stop",
    total_duration: nanoseconds(queueMs + prefillMs + decodeMs),
    load_duration: 0,
    prompt_eval_count: promptTokens,
    prompt_eval_duration: nanoseconds(prefillMs),
    eval_count: tokens,
    eval_duration: nanoseconds(decodeMs),
  };
}

function nanoseconds(ms: number): number {
  return Math.round(ms * 1e6);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function thinkingOf(think: boolean | string | undefined) {
  if (think === undefined) return {};
  if (typeof think === "boolean") return { thinking: think ? ("on" as const) : ("off" as const) };
  return { thinking: "on" as const, reasoningEffort: think };
}

function limitsOf(options: OllamaOptions = {} as OllamaOptions) {
  const { num_predict: count, stop, ...sampling } = options;
  // -1 is no limit, -2 what fits the context.
  return { sampling, stop, maxTokens: count === undefined || count < 1 ? undefined : count };
}

function shapeOf(format: string | Record<string, unknown> | undefined): AnswerShape | undefined {
  if (format === undefined || format === "") return undefined;
  return typeof format === "string" ? { type: "json" } : { type: "schema", schema: format };
}

function toApi(message: Pick<OllamaMessage, "role" | "content"> & Partial<OllamaMessage>) {
  const { role, content = "", thinking, tool_calls: calls, tool_name: name } = message;
  if (role !== "assistant") {
    const common = { role, content, name };
    return (role === "tool" ? { ...common, tool_call_id: undefined } : common) as ApiMessage;
  }
  return {
    role,
    content,
    name: undefined,
    reasoning: undefined,
    refusal: undefined,
    reasoning_content: thinking,
    tool_calls: calls?.map((call) => ({
      id: undefined,
      type: "function" as const,
      function: call.function,
    })),
  } satisfies ApiMessage;
}
