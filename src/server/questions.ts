/** Questions to the engine that are not answered yet, by their numbers. */
import type { Problem, Reply } from "./protocol.ts";

export class Questions {
  readonly #open = new Map<number, (reply: Reply | Problem) => void>();

  get count(): number {
    return this.#open.size;
  }

  add(id: number, answer: (reply: Reply | Problem) => void): void {
    this.#open.set(id, answer);
  }

  /** Of no effect for what is no question. */
  answer(id: number, reply: Reply | Problem): void {
    const answer = this.#open.get(id);
    this.#open.delete(id);
    answer?.(reply);
  }

  failAll(message: string): void {
    for (const id of [...this.#open.keys()]) this.answer(id, { kind: "failed", message });
  }
}
