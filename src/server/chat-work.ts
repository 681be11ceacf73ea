/** What a chat asks of the engine, whichever API it came through. */
import type { ChatRequest } from "../chat/chat-prompt.ts";
import type { AnswerShape } from "../chat/shape/answer-shape.ts";
import type { CallableTool } from "../chat/shape/forced-call.ts";
import { invalid } from "./api-error.ts";
import type { Exchange } from "./exchange.ts";
import type { Work } from "./protocol.ts";
import type { SamplingRequest } from "./schema/field.ts";
import { samplingOf } from "./work-request.ts";

/** What the model is to do with its tools; "none" is to offer none. */
export type ToolChoice = "auto" | "required" | { readonly name: string };

export interface ChatWish {
  readonly request: ChatRequest;
  readonly choice?: ToolChoice | undefined;
  readonly sampling: SamplingRequest;
  readonly maxTokens: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly ignoreEos?: boolean | undefined;
  readonly logprobs?: number | undefined;
  readonly shape?: AnswerShape | undefined;
}

export function chatWork({ service, client }: Exchange, wish: ChatWish): Work {
  const { request, choice = "auto", stop = [], ignoreEos = false, logprobs, maxTokens } = wish;
  const { tools = [], thinking } = request;
  const forced = choice === "auto" ? undefined : forcedTools(tools, choice);
  return {
    type: "answer",
    prompt: {
      type: "chat",
      // What must be a call has no room for thoughts.
      request: forced === undefined ? request : { ...request, thinking: thinking ?? "off" },
      calls: tools.length > 0,
    },
    client,
    sampling: samplingOf(wish.sampling, service.options.sampling),
    maxTokens,
    stop,
    ignoreEos,
    logprobs,
    // What must be a call is no answer.
    shape: forced === undefined ? wish.shape : { type: "call", tools: forced },
  };
}

/** Throws an `ApiError` if there is no such tool. */
function forcedTools(
  tools: readonly unknown[],
  choice: Exclude<ToolChoice, "auto">,
): CallableTool[] {
  const known = (tools as readonly { readonly function: CallableTool }[]).map((tool) => ({
    name: tool.function.name,
    parameters: tool.function.parameters,
  }));
  const chosen = choice === "required" ? known : known.filter(({ name }) => name === choice.name);
  if (chosen.length > 0) return chosen;
  const what = choice === "required" ? "a tool" : `the tool ${choice.name}`;
  throw invalid(`tool_choice asks for ${what}, and tools does not have it`, "tool_choice");
}
