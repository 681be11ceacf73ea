/** The Worker that owns the grammar engine. Large grammars take it long, and it cannot be told. */
import type { AnswerShape } from "../chat/shape/answer-shape.ts";
import { Grammars, type GrammarVocabulary } from "../chat/shape/grammars.ts";
import type { TokenMask } from "../chat/shape/token-mask.ts";
import { problemOf } from "./problem.ts";
import type { Problem } from "./protocol.ts";

export type ToGrammars =
  | { readonly type: "vocabulary"; readonly vocabulary: GrammarVocabulary }
  /** Makes a mask, which goes by the number from then on. */
  | { readonly type: "compile"; readonly id: number; readonly shape: AnswerShape }
  | { readonly type: "accept"; readonly id: number; readonly token: number }
  | { readonly type: "close"; readonly id: number };

/** The answer to what was asked of a mask: the tokens that may come next. */
export interface FromGrammars {
  readonly id: number;
  readonly answer: Int32Array | Problem;
}

declare const self: Worker;

let grammars: Grammars | undefined;
const masks = new Map<number, TokenMask>();

async function answerTo(
  message: Exclude<ToGrammars, { type: "vocabulary" | "close" }>,
): Promise<Int32Array | Problem> {
  try {
    const { id } = message;
    if (message.type === "compile") {
      const mask = await grammars?.compile(message.shape);
      if (mask !== undefined) masks.set(id, mask);
    } else await masks.get(id)?.accept(message.token);
    // A copy: what it is a part of is all of the engine's memory.
    return masks.get(id)?.allowed.slice() ?? new Int32Array();
  } catch (error) {
    return problemOf(error);
  }
}

async function receive(message: ToGrammars): Promise<void> {
  if (message.type === "vocabulary") {
    const { vocabulary } = message;
    grammars = new Grammars(() => vocabulary);
  } else if (message.type === "close") {
    masks.get(message.id)?.close();
    masks.delete(message.id);
  } else {
    const answer = await answerTo(message);
    const reply: FromGrammars = { id: message.id, answer };
    self.postMessage(reply);
  }
}

self.onmessage = ({ data }: MessageEvent<ToGrammars>) => void receive(data);
