/** Masks from a thread of their own: the same as from this one, and an end to those too slow. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { BadShape } from "../../src/chat/shape/answer-shape.ts";
import { Grammars, vocabularyOf } from "../../src/chat/shape/grammars.ts";
import { GrammarHost } from "../../src/server/grammar-host.ts";
import { Refusal } from "../../src/server/problem.ts";
import { builtinChat } from "../helpers/builtin-chat.ts";

setDefaultTimeout(60_000);

const { tokenizer } = await builtinChat();
const host = new GrammarHost(tokenizer);
afterAll(() => host.close());

const grammar = (text: string) => ({ type: "grammar", grammar: text }) as const;

describe("a mask", () => {
  test("is the same as from this thread, token by token, beside others", async () => {
    const here = new Grammars(() => vocabularyOf(tokenizer));
    const shapes = [grammar('root ::= "a" [b-d]+ | "😀"'), { type: "json" }] as const;
    await Promise.all(
      shapes.map(async (shape) => {
        const [near, far] = [await here.compile(shape), await host.compile(shape)];
        expect(far.allowed).toEqual(near.allowed);
        for (const token of tokenizer.encode(shape.type === "json" ? '{"a": [1' : "abcd")) {
          await Promise.all([near.accept(token), far.accept(token)]);
          expect(far.allowed).toEqual(near.allowed);
        }
        near.close();
        far.close();
      }),
    );
    here.close();
  });

  test("of a wrong shape is refused", async () => {
    const wrong = await host.compile(grammar("root ::= a")).catch((error: unknown) => error);
    expect(wrong).toBeInstanceOf(BadShape);
    // Whether a token begins it, only the engine knows.
    const empty = await host.compile(grammar('root ::= "\\x01" | "\\x02"')).then(
      (mask) => mask.close(),
      (error: unknown) => error,
    );
    expect(empty === undefined || empty instanceof Refusal).toBe(true);
  });
});

test("a grammar that takes too long ends alone, and the next one works", async () => {
  const hasty = new GrammarHost(tokenizer, { compile: 20_000, accept: 100 });
  const mask = await hasty.compile(grammar('root ::= root root root | [a-z ] | ""'));
  let turns = 0;
  const timer = setInterval(() => turns++, 5);
  const slow = (async () => {
    for (const token of tokenizer.encode("the quick brown fox ".repeat(40))) {
      await mask.accept(token);
    }
  })();
  const error = await slow.catch((thrown: unknown) => thrown);
  clearInterval(timer);
  expect(error).toBeInstanceOf(Refusal);
  expect((error as Refusal).problem).toEqual({
    kind: "usage",
    message: "the grammar or schema takes too long; make it smaller or less ambiguous",
    code: "grammar_too_slow",
  });
  // This thread had its turns all the while.
  expect(turns).toBeGreaterThan(5);
  expect(mask.accept(5)).rejects.toThrow("the grammar engine was ended by another grammar");
  mask.close();
  const next = await hasty.compile(grammar('root ::= "a"'));
  expect(next.allowed.some((word) => word !== 0)).toBe(true);
  hasty.close();
});
