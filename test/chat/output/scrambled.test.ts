/** Answers that no model would write: pieces of good ones in any order. */
import { expect, test } from "bun:test";
import cases from "./answers.json";
import { SeededRandom } from "../../helpers/seeded-random.ts";
import { collect, splitAllWays, type Model } from "./feeding.ts";

const models: Readonly<Record<string, Model>> = cases.models;

/** Marks, words and signs of the answers of a model, from all of them. */
function piecesOf(name: string): string[] {
  const answers = cases.answers.filter(({ model }) => model === name);
  return answers.flatMap(
    ({ answer }) => answer.match(/<[^<>\s]*>|\[[A-Z_]+\]|\w+|\s+|[^\w\s]/g) ?? [],
  );
}

test.each(Object.entries(models))("of %s come out the same however they are cut", (name, model) => {
  const pieces = piecesOf(name);
  const random = new SeededRandom(name.length);
  for (let round = 0; round < 60; round++) {
    const length = 1 + random.below(24);
    const answer = Array.from({ length }, () => pieces[random.below(pieces.length)]).join("");
    const ways = splitAllWays(model, answer, { tools: cases.tools });
    for (const parts of ways) expect({ answer, parts }).toEqual({ answer, parts: ways[0] ?? [] });
    const { toolCalls } = collect(ways[0] ?? []);
    for (const { arguments: json } of toolCalls) expect(JSON.parse(json)).toBeObject();
  }
});
