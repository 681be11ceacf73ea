/**
 * A mask of an answer that may also be calls of tools: it begins with the mark that opens them, or
 * has its shape. Behind the mark everything is possible, as it is without a shape.
 */
import type { OutputFormat } from "../output/format.ts";
import { BadShape } from "./answer-shape.ts";
import type { TokenMask } from "./token-mask.ts";

/** Throws a `BadShape` for a model whose calls do not begin with a token of their own. */
export function orCalls(mask: TokenMask, format: OutputFormat): TokenMask {
  // Its calls are messages of another channel, which no mask of the answer is about.
  if (format.isHarmony) return mask;
  const marks = new Set(format.calls.map(({ open }) => open));
  const openings = [...format.tokens].flatMap(([id, mark]) => (marks.has(mark) ? [id] : []));
  if (openings.length > 0 && !format.hasPlainCalls) return new CallMask(mask, openings);
  throw new BadShape(
    "calls of this model cannot be told from an answer of a given format; " +
      "leave tools or the format out",
    "schema",
    "unsupported_format",
  );
}

class CallMask implements TokenMask {
  readonly #mask: TokenMask;
  readonly #openings: ReadonlySet<number>;
  #state: "fresh" | "shape" | "calls" = "fresh";

  constructor(mask: TokenMask, openings: readonly number[]) {
    this.#mask = mask;
    this.#openings = new Set(openings);
  }

  get allowed(): Int32Array {
    const { allowed } = this.#mask;
    if (this.#state === "shape") return allowed;
    if (this.#state === "calls") return new Int32Array(allowed.length).fill(-1);
    const either = allowed.slice();
    for (const id of this.#openings) either[id >> 5] = (either[id >> 5] ?? 0) | (1 << (id & 31));
    return either;
  }

  async accept(token: number): Promise<void> {
    if (this.#state === "fresh") this.#state = this.#openings.has(token) ? "calls" : "shape";
    if (this.#state === "shape") await this.#mask.accept(token);
  }

  close(): void {
    this.#mask.close();
  }
}
