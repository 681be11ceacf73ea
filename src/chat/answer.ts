/**
 * What a model has answered: its text, what it thought before that, and the functions it calls.
 */

/**
 * A piece of an answer. Pieces of the same kind that follow each other are one text, wherever they
 * are cut. Calls are numbered from 0 and never overlap: "call", its "arguments", and either
 * "call_end" or "call_broken".
 */
export type Part =
  | { readonly type: "text" | "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly index: number; readonly id: string; readonly name: string }
  /** Pieces of a JSON object. */
  | { readonly type: "arguments"; readonly index: number; readonly text: string }
  | { readonly type: "call_end"; readonly index: number }
  /** It was cut off or is malformed: it does not count, and comes once more as text behind this. */
  | { readonly type: "call_broken"; readonly index: number };

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** A JSON object, as the model wrote it. */
  readonly arguments: string;
}

export interface Answer {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
}

/** An answer as a message of the conversation, in the shape of OpenAI's API. */
export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: "function";
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
}

export function messageOf({ text, reasoning, toolCalls }: Answer): AssistantMessage {
  const calls = toolCalls.map(({ id, name, arguments: json }) => ({
    id,
    type: "function" as const,
    function: { name, arguments: json },
  }));
  return {
    role: "assistant",
    content: text,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** Puts the parts of an answer together. */
export class AnswerCollector {
  #text = "";
  #reasoning = "";
  #call: { id: string; name: string; arguments: string } | undefined;
  readonly #calls: ToolCall[] = [];

  add(part: Part): void {
    switch (part.type) {
      case "text":
        this.#text += part.text;
        break;
      case "reasoning":
        this.#reasoning += part.text;
        break;
      case "call":
        this.#call = { id: part.id, name: part.name, arguments: "" };
        break;
      case "arguments":
        if (this.#call !== undefined) this.#call.arguments += part.text;
        break;
      case "call_end":
        if (this.#call !== undefined) this.#calls.push(this.#call);
        this.#call = undefined;
        break;
      case "call_broken":
        this.#call = undefined;
    }
  }

  /** What there is so far; calls count once they are complete. */
  get answer(): Answer {
    return { text: this.#text, reasoning: this.#reasoning, toolCalls: [...this.#calls] };
  }
}
