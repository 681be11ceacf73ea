/** POST /v1/chat/completions */
import { AnswerCollector, type Part } from "../../chat/answer.ts";
import { answerShape } from "../answer-shape.ts";
import { invalid } from "../api-error.ts";
import { chatWork, type ToolChoice } from "../chat-work.ts";
import { chatRequest } from "../conversation.ts";
import type { Exchange } from "../exchange.ts";
import type { Job } from "../job.ts";
import type { Finish, LogprobEntry, Work } from "../protocol.ts";
import { checkBody } from "../schema/field.ts";
import { chatCompletionBody, type ChatCompletionBody } from "../schema/openai.ts";
import { event, merged, streamResponse } from "../stream.ts";
import { copies } from "../work-request.ts";
import {
  chatLogprobs,
  newId,
  openaiStream,
  streamEnd,
  timingsOf,
  usageOf,
} from "./openai-shape.ts";

export async function chatCompletions(exchange: Exchange, body: unknown): Promise<Response> {
  const { service } = exchange;
  const { value, unknown } = checkBody(chatCompletionBody, body);
  exchange.useModel(value.model);
  service.noteUnknown(exchange.route, unknown);
  const work = workOf(value, exchange);
  const jobs = await exchange.start(copies(work, value.n ?? 1));
  const head = {
    id: newId("chatcmpl-"),
    created: Math.floor(Date.now() / 1000),
    model: exchange.modelId,
    system_fingerprint: `zinc-${service.options.version}`,
  };
  if (value.stream === true) {
    return streamResponse(exchange, chunks(exchange, jobs, head, value), openaiStream);
  }
  const choices = await Promise.all(jobs.map((job, i) => readChoice(exchange, job, i, value)));
  const finishes = choices.map(({ finish }) => finish);
  const [first] = finishes;
  return Response.json({
    ...head,
    object: "chat.completion",
    choices: choices.map(({ choice }) => choice),
    usage: usageOf(finishes),
    ...(first && { timings: timingsOf(first) }),
  });
}

function workOf(body: ChatCompletionBody, exchange: Exchange): Work {
  const { messages, tools = [], tool_choice: choice } = body;
  if (body.top_logprobs !== undefined && body.logprobs !== true) {
    throw invalid("top_logprobs needs logprobs to be true", "top_logprobs");
  }
  const last = messages.at(-1);
  const goesOn = body.continue_final_message === true;
  if (goesOn && last?.role !== "assistant") {
    throw invalid("continue_final_message needs an assistant message at the end", "messages");
  }
  return chatWork(exchange, {
    request: chatRequest({
      messages: goesOn ? messages.slice(0, -1) : messages,
      tools: choice === "none" ? [] : tools,
      reasoningEffort: body.reasoning_effort,
      variables: body.chat_template_kwargs,
      prefix: goesOn ? last?.content : undefined,
    }),
    choice: choiceOf(choice),
    sampling: body,
    maxTokens: body.max_completion_tokens ?? body.max_tokens,
    stop: body.stop,
    ignoreEos: body.ignore_eos,
    logprobs: body.logprobs === true ? (body.top_logprobs ?? 0) : undefined,
    shape: answerShape(body),
  });
}

function choiceOf(choice: ChatCompletionBody["tool_choice"]): ToolChoice {
  if (choice === undefined || choice === "none" || choice === "auto") return "auto";
  return choice === "required" ? choice : choice.function;
}

interface Head {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

async function readChoice(exchange: Exchange, job: Job, index: number, body: ChatCompletionBody) {
  const collector = new AnswerCollector();
  const logprobs: LogprobEntry[] = [];
  const pieces = exchange.read(job);
  for (;;) {
    const next = await pieces.next();
    if (next.done !== true) {
      for (const part of next.value.parts) collector.add(part);
      logprobs.push(...next.value.logprobs);
      continue;
    }
    const finish = next.value;
    const { text, reasoning, toolCalls } = collector.answer;
    const calls = allowedCalls(toolCalls, body);
    const message = {
      role: "assistant",
      content: text === "" && calls.length > 0 ? null : text,
      refusal: null,
      ...(reasoning !== "" && { reasoning_content: reasoning }),
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, name, arguments: args }) => ({
          id,
          type: "function",
          function: { name, arguments: args },
        })),
      }),
    };
    const choice = {
      index,
      message,
      logprobs: body.logprobs === true ? chatLogprobs(logprobs) : null,
      finish_reason: finishReason(finish, calls.length),
    };
    return { choice, finish };
  }
}

function allowedCalls<T>(calls: readonly T[], body: ChatCompletionBody): readonly T[] {
  return body.parallel_tool_calls === false ? calls.slice(0, 1) : calls;
}

function finishReason({ reason }: Finish, callCount: number): string {
  if (reason === "length") return "length";
  return callCount > 0 ? "tool_calls" : "stop";
}

async function* chunks(
  exchange: Exchange,
  jobs: readonly Job[],
  head: Head,
  body: ChatCompletionBody,
): AsyncGenerator<string, void> {
  const withUsage = body.stream_options?.include_usage === true;
  const chunk = (choices: readonly unknown[], extra = {}) =>
    event({
      ...head,
      object: "chat.completion.chunk",
      choices,
      ...(withUsage && { usage: null }),
      ...extra,
    });
  const choice = (
    index: number,
    delta: object,
    reason: string | null,
    logprobs: unknown = null,
  ) => ({
    index,
    delta,
    logprobs,
    finish_reason: reason,
  });
  for (const index of jobs.keys()) {
    yield chunk([choice(index, { role: "assistant", content: "", refusal: null }, null)]);
  }
  const finishes: Finish[] = [];
  const calls = jobs.map(() => new StreamedCalls(body.parallel_tool_calls === false));
  for await (const { index, next } of merged(jobs.map((job) => exchange.read(job)))) {
    const known = calls[index];
    if (next.done === true) {
      finishes.push(next.value);
      const reason = finishReason(next.value, known?.count ?? 0);
      const isLast = finishes.length === jobs.length;
      yield chunk([choice(index, {}, reason)], isLast ? { timings: timingsOf(next.value) } : {});
      continue;
    }
    let { logprobs } = next.value;
    for (const part of next.value.parts) {
      const delta = known?.deltaOf(part);
      if (delta === undefined) continue;
      yield chunk([choice(index, delta, null, logprobsOf(logprobs, body))]);
      logprobs = [];
    }
    if (logprobs.length > 0) yield chunk([choice(index, {}, null, logprobsOf(logprobs, body))]);
  }
  if (withUsage) yield chunk([], { usage: usageOf(finishes) });
  yield streamEnd;
}

function logprobsOf(entries: readonly LogprobEntry[], { logprobs }: ChatCompletionBody): unknown {
  return logprobs === true && entries.length > 0 ? chatLogprobs(entries) : null;
}

/** Turns parts into deltas; calls are numbered as they come. */
class StreamedCalls {
  readonly #isSingle: boolean;
  #brokenCount = 0;
  /** Calls that were begun and not broken. */
  count = 0;

  constructor(isSingle: boolean) {
    this.#isSingle = isSingle;
  }

  deltaOf(part: Part): object | undefined {
    switch (part.type) {
      case "text":
        return { content: part.text };
      case "reasoning":
        return { reasoning_content: part.text };
      case "call": {
        this.count++;
        const { index, id, name } = part;
        if (this.#isHidden(index)) return undefined;
        return callDelta(index, { id, type: "function", function: { name, arguments: "" } });
      }
      case "arguments": {
        const { index, text } = part;
        return this.#isHidden(index)
          ? undefined
          : callDelta(index, { function: { arguments: text } });
      }
      case "call_broken":
        this.count--;
        this.#brokenCount++;
        return undefined;
      case "call_end":
        return undefined;
    }
  }

  #isHidden(index: number): boolean {
    return this.#isSingle && index - this.#brokenCount > 0;
  }
}

function callDelta(index: number, call: object): object {
  return { tool_calls: [{ index, ...call }] };
}
