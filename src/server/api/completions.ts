/** POST /v1/completions: the prompt as it is, without a chat template. */
import { AnswerCollector } from "../../chat/answer.ts";
import { answerShape } from "../answer-shape.ts";
import { invalid } from "../api-error.ts";
import type { Exchange } from "../exchange.ts";
import type { Job } from "../job.ts";
import type { Finish, LogprobEntry, Piece, Work } from "../protocol.ts";
import { checkBody } from "../schema/field.ts";
import { completionBody, type CompletionBody } from "../schema/openai.ts";
import { event, merged, streamResponse } from "../stream.ts";
import { copies, samplingOf } from "../work-request.ts";
import { finite, newId, openaiStream, streamEnd, timingsOf, usageOf } from "./openai-shape.ts";

/** What OpenAI makes where nothing is said. */
const usualMaxTokens = 16;

export async function completions(exchange: Exchange, body: unknown): Promise<Response> {
  const { service } = exchange;
  const { value, unknown } = checkBody(completionBody, body);
  exchange.useModel(value.model);
  service.noteUnknown(exchange.route, unknown);
  const count = value.n ?? 1;
  if (value.best_of !== undefined && value.best_of !== count) {
    throw invalid("best_of other than n is not supported", "best_of");
  }
  if (value.echo === true && value.logprobs !== undefined) {
    throw invalid("logprobs of an echoed prompt are not supported", "echo");
  }
  const works = value.prompt.flatMap((prompt) => copies(workOf(exchange, value, prompt), count));
  const jobs = await exchange.start(works);
  const echoes = await Promise.all(value.prompt.map((prompt) => echoOf(exchange, value, prompt)));
  const head = {
    id: newId("cmpl-"),
    object: "text_completion",
    created: Math.floor(Date.now() / 1000),
    model: exchange.modelId,
    system_fingerprint: `zinc-${service.options.version}`,
  };
  const answers = jobs.map((job, i) => ({ job, echo: echoes[Math.floor(i / count)] ?? "" }));
  // Each prompt counts once, however many answers it has.
  const promptTokens = jobs.reduce((n, job, i) => (i % count === 0 ? n + job.promptTokens : n), 0);
  if (value.stream === true) {
    const frames = chunks(exchange, answers, head, value, promptTokens);
    return streamResponse(exchange, frames, openaiStream);
  }
  const read = await Promise.all(
    answers.map(({ job, echo }, index) => readChoice(exchange, job, index, echo, value)),
  );
  const finishes = read.map(({ finish }) => finish);
  return Response.json({
    ...head,
    choices: read.map(({ choice }) => choice),
    usage: usageOf(finishes, promptTokens),
    ...(finishes[0] && { timings: timingsOf(finishes[0]) }),
  });
}

function workOf(
  { service, client }: Exchange,
  body: CompletionBody,
  prompt: string | number[],
): Work {
  return {
    type: "answer",
    prompt:
      typeof prompt === "string"
        ? { type: "text", text: prompt }
        : { type: "tokens", tokens: prompt },
    client,
    sampling: samplingOf(body, service.options.sampling),
    maxTokens: body.max_tokens ?? usualMaxTokens,
    stop: body.stop ?? [],
    ignoreEos: body.ignore_eos === true,
    logprobs: body.logprobs,
    shape: answerShape(body),
  };
}

async function echoOf({ service }: Exchange, body: CompletionBody, prompt: string | number[]) {
  if (body.echo !== true) return "";
  if (typeof prompt === "string") return prompt;
  const reply = await service.host.ask({ type: "detokenize", tokens: prompt });
  return reply.type === "text" ? reply.text : "";
}

async function readChoice(
  exchange: Exchange,
  job: Job,
  index: number,
  echo: string,
  body: CompletionBody,
) {
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
    const choice = {
      index,
      text: echo + collector.answer.text,
      logprobs: body.logprobs === undefined ? null : legacyLogprobs(logprobs, 0),
      finish_reason: reasonOf(next.value),
    };
    return { choice, finish: next.value };
  }
}

async function* chunks(
  exchange: Exchange,
  answers: readonly { readonly job: Job; readonly echo: string }[],
  head: object,
  body: CompletionBody,
  promptTokens: number,
): AsyncGenerator<string, void> {
  const withUsage = body.stream_options?.include_usage === true;
  const chunk = (choices: readonly unknown[], extra = {}) =>
    event({ ...head, choices, ...(withUsage && { usage: null }), ...extra });
  const choice = (
    index: number,
    text: string,
    reason: string | null,
    logprobs: unknown = null,
  ) => ({
    index,
    text,
    logprobs,
    finish_reason: reason,
  });
  for (const [index, { echo }] of answers.entries()) {
    if (echo !== "") yield chunk([choice(index, echo, null)]);
  }
  const offsets = answers.map(() => 0);
  const finishes: Finish[] = [];
  for await (const { index, next } of merged(answers.map(({ job }) => exchange.read(job)))) {
    if (next.done === true) {
      finishes.push(next.value);
      const timings = finishes.length === answers.length ? { timings: timingsOf(next.value) } : {};
      yield chunk([choice(index, "", reasonOf(next.value))], timings);
      continue;
    }
    const { logprobs } = next.value;
    const shown =
      body.logprobs === undefined || logprobs.length === 0
        ? null
        : legacyLogprobs(logprobs, offsets[index] ?? 0);
    offsets[index] = (offsets[index] ?? 0) + textOf(next.value).length;
    yield chunk([choice(index, textOf(next.value), null, shown)]);
  }
  if (withUsage) yield chunk([], { usage: usageOf(finishes, promptTokens) });
  yield streamEnd;
}

function textOf({ parts }: Piece): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function reasonOf({ reason }: Finish): string {
  return reason === "length" ? "length" : "stop";
}

function legacyLogprobs(entries: readonly LogprobEntry[], offset: number) {
  let at = offset;
  return {
    tokens: entries.map(({ text }) => text),
    token_logprobs: entries.map(({ logprob }) => finite(logprob)),
    top_logprobs: entries.map(({ top }) =>
      Object.fromEntries(top.map(({ text, logprob }) => [text, finite(logprob)])),
    ),
    text_offset: entries.map(({ text }) => {
      at += text.length;
      return at - text.length;
    }),
  };
}
