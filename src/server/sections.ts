/** An answer as a row of sections, as APIs with blocks have it: texts, thoughts and calls. */
import type { Part } from "../chat/answer.ts";

export interface Section {
  readonly index: number;
  readonly kind: "text" | "reasoning" | "call";
  /** Of a call. */
  readonly id: string;
  readonly name: string;
  /** The text, or the arguments of a call as JSON. */
  text: string;
  /** A call that was not completed. */
  isBroken: boolean;
}

export type SectionEvent =
  | { readonly type: "open" | "close"; readonly section: Section }
  | { readonly type: "delta"; readonly section: Section; readonly text: string };

export class Sections {
  readonly #all: Section[] = [];
  #open: Section | undefined;

  /** Those that count. */
  get list(): readonly Section[] {
    return this.#all.filter(({ isBroken }) => !isBroken);
  }

  get callCount(): number {
    return this.list.filter(({ kind }) => kind === "call").length;
  }

  add(part: Part): SectionEvent[] {
    switch (part.type) {
      case "text":
      case "reasoning":
        return [...this.#enter(part.type, "", ""), ...this.#write(part.text)];
      case "call":
        return [...this.end(), ...this.#enter("call", part.id, part.name)];
      case "arguments":
        return this.#write(part.text);
      case "call_end":
        return this.end();
      case "call_broken":
        if (this.#open !== undefined) this.#open.isBroken = true;
        return this.end();
    }
  }

  /** Closes what is open. */
  end(): SectionEvent[] {
    const section = this.#open;
    this.#open = undefined;
    return section === undefined ? [] : [{ type: "close", section }];
  }

  #enter(kind: Section["kind"], id: string, name: string): SectionEvent[] {
    if (kind !== "call" && this.#open?.kind === kind) return [];
    const before = this.end();
    const section = { index: this.#all.length, kind, id, name, text: "", isBroken: false };
    this.#all.push(section);
    this.#open = section;
    return [...before, { type: "open", section }];
  }

  #write(text: string): SectionEvent[] {
    const section = this.#open;
    if (section === undefined) return [];
    section.text += text;
    return [{ type: "delta", section, text }];
  }
}
