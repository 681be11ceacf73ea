/** Feeds answers to a splitter in every way in which they can be cut. */
import { AnswerCollector, type Answer, type Part } from "../../../src/chat/answer.ts";
import { formatOf, type OutputFormat } from "../../../src/chat/output/format.ts";
import { OutputSplitter, type SplitOptions } from "../../../src/chat/output/splitter.ts";
import { SeededRandom } from "../../helpers/seeded-random.ts";

/** A template that shows these marks, and a vocabulary that has them as tokens, or spells them. */
export interface Model {
  readonly template: string;
  /** One token each, of structure ("control") or of text that counts ("shown"). */
  readonly control?: readonly string[];
  readonly shown?: readonly string[];
}

export function formatFor({ template, control = [], shown = [] }: Model): OutputFormat {
  const tokens = [...control, ...shown];
  return formatOf(template, {
    idOf: (text) => (tokens.includes(text) ? tokens.indexOf(text) : undefined),
    isControl: (id) => id < control.length,
  });
}

/** A piece of text, or a token of the vocabulary that is a mark. */
interface Piece {
  readonly text: string;
  readonly token?: number;
}

/** The whole answer, its marks as tokens where the vocabulary has them. */
function piecesOf(answer: string, { control = [], shown = [] }: Model): Piece[] {
  const tokens = [...control, ...shown];
  const escaped = tokens
    .toSorted((a, b) => b.length - a.length)
    .map((mark) => mark.replace(/[|[\]\\^$.*+?(){}]/g, "\\$&"));
  const parts = tokens.length === 0 ? [answer] : answer.split(new RegExp(`(${escaped.join("|")})`));
  return parts
    .filter((text) => text !== "")
    .map((text) => (tokens.includes(text) ? { text, token: tokens.indexOf(text) } : { text }));
}

/** Cuts texts behind a number of units that `length` gives anew each time; tokens stay whole. */
function cut(pieces: readonly Piece[], length: () => number): Piece[] {
  return pieces.flatMap((piece) => {
    if (piece.token !== undefined) return [piece];
    const parts: Piece[] = [];
    for (let at = 0; at < piece.text.length;) {
      const end = at + length();
      parts.push({ text: piece.text.slice(at, end) });
      at = end;
    }
    return parts;
  });
}

/** What comes out, with neighbours of one kind joined; ids are call_0, call_1, … */
export function split(model: Model, pieces: readonly Piece[], options: SplitOptions = {}): Part[] {
  let count = 0;
  const newId = () => `call_${count++}`;
  const splitter = new OutputSplitter(formatFor(model), { newId, ...options });
  const parts = pieces.flatMap(({ text, token }) => splitter.push(text, token));
  return joined([...parts, ...splitter.end()]);
}

/** The parts of an answer that is fed whole, by the unit, and in random pieces. */
export function splitAllWays(model: Model, answer: string, options: SplitOptions = {}): Part[][] {
  const pieces = piecesOf(answer, model);
  const random = new SeededRandom(answer.length);
  const ways = [pieces, cut(pieces, () => 1)];
  for (let i = 0; i < 8; i++) ways.push(cut(pieces, () => 1 + random.below(9)));
  return ways.map((way) => split(model, way, options));
}

function joined(parts: readonly Part[]): Part[] {
  const out: Part[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    if (last !== undefined && "text" in last && "text" in part && last.type === part.type) {
      out[out.length - 1] = { ...last, text: last.text + part.text };
    } else out.push(part);
  }
  return out;
}

export function collect(parts: readonly Part[]): Answer {
  const collector = new AnswerCollector();
  for (const part of parts) collector.add(part);
  return collector.answer;
}
