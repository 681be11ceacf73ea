/** A conversation that grows: what was said, what was answered, and calls that wait for results. */
import { messageOf, type Answer } from "./answer.ts";
import type { ChatMessage } from "./messages.ts";

/** A function that the model has called and whose result is still missing. */
export interface OpenCall {
  readonly id: string;
  readonly name: string;
}

export class Conversation {
  /** What the model is told before all. */
  system: string | undefined;
  #messages: ChatMessage[] = [];

  constructor(system?: string) {
    this.system = system;
  }

  /** All of it, as a request has it. */
  get messages(): readonly ChatMessage[] {
    const { system } = this;
    return system === undefined
      ? [...this.#messages]
      : [{ role: "system", content: system }, ...this.#messages];
  }

  /** The calls of the last answer that have no result yet, in order. */
  get openCalls(): readonly OpenCall[] {
    const at = this.#messages.findLastIndex(({ role }) => role === "assistant");
    const calls = (this.#messages[at]?.tool_calls ?? []) as readonly {
      readonly id: string;
      readonly function: { readonly name: string };
    }[];
    const results = this.#messages.length - at - 1;
    return calls.slice(results).map(({ id, function: { name } }) => ({ id, name }));
  }

  /** The result of the first open call if there is one, else a question. */
  say(text: string): void {
    const [call] = this.openCalls;
    this.#messages.push(
      call === undefined
        ? { role: "user", content: text }
        : { role: "tool", tool_call_id: call.id, name: call.name, content: text },
    );
  }

  answer(answer: Answer): void {
    this.#messages.push({ ...messageOf(answer) });
  }

  /** Takes back what was said last. */
  unsay(): void {
    this.#messages.pop();
  }

  /** Takes back all behind the last question. False if there is no question. */
  retract(): boolean {
    const at = this.#messages.findLastIndex(({ role }) => role === "user");
    this.#messages = this.#messages.slice(0, at + 1);
    return at >= 0;
  }

  /** Forgets everything but the system's message. */
  clear(): void {
    this.#messages = [];
  }

  /** Goes on with another conversation; a system message at its start replaces the present one. */
  replace(messages: readonly ChatMessage[]): void {
    const [first, ...rest] = messages;
    const hasSystem = first?.role === "system" && typeof first.content === "string";
    this.system = hasSystem ? String(first.content) : undefined;
    this.#messages = hasSystem ? rest : [...messages];
  }
}
