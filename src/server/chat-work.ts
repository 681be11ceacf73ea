/** What a chat asks of the engine, whichever API it came through. */
import type { ChatRequest } from "../chat/chat-prompt.ts";
import { invalid } from "./api-error.ts";
import type { Exchange } from "./exchange.ts";
import type { AnswerShape, Work } from "./protocol.ts";
import type { SamplingRequest } from "./schema/field.ts";
import { samplingOf } from "./work-request.ts";

export interface ChatWish {
  readonly request: ChatRequest;
  readonly sampling: SamplingRequest;
  readonly maxTokens: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly ignoreEos?: boolean | undefined;
  readonly logprobs?: number | undefined;
  readonly shape?: AnswerShape | undefined;
}

export function chatWork({ service, client }: Exchange, wish: ChatWish): Work {
  const { request, stop = [], ignoreEos = false, logprobs, maxTokens, shape } = wish;
  const { tools = [] } = request;
  if (shape !== undefined && tools.length > 0) {
    throw invalid("a format of the answer beside tools is not supported", "response_format");
  }
  return {
    prompt: { type: "chat", request, calls: tools.length > 0 },
    client,
    sampling: samplingOf(wish.sampling, service.options.sampling),
    maxTokens,
    stop,
    ignoreEos,
    logprobs,
    shape,
  };
}

/** Tools may be left to the model or kept from it; a call cannot be forced. */
export function requireFreeChoice(isForced: boolean): void {
  if (!isForced) return;
  const message = "tool_choice: a call cannot be forced; only auto and none are supported";
  throw invalid(message, "tool_choice", "unsupported_tool_choice");
}
