/** Grammars of users: what is refused, and where. What is taken is in grammars.test.ts. */
import { describe, expect, test } from "bun:test";
import { BadGrammar } from "../../src/chat/shape/gbnf-reader.ts";
import { checkedGrammar } from "../../src/chat/shape/gbnf.ts";

function refusalOf(grammar: string): string {
  try {
    checkedGrammar(grammar);
  } catch (error) {
    if (error instanceof BadGrammar) return error.message;
    throw error;
  }
  return "it was taken";
}

describe("a grammar is refused", () => {
  test.each([
    ["", "grammar: it has no rule root"],
    ['answer ::= "a"', "grammar: it has no rule root"],
    ["root ::= missing", "grammar, line 1: there is no rule missing"],
    ['root ::= "a" (b | ("c" d)?)\nb ::= "b"', "grammar, line 1: there is no rule d"],
    ['root ::= "a"\nroot ::= "b"', "grammar, line 2: there are two rules root"],
    ['root ::= "a\n"', "grammar, line 1: a literal or a set has no end on its line"],
    ['root ::= "a', "grammar, line 1: a literal or a set has no end on its line"],
    ["root ::= [a-", "grammar, line 1: a literal or a set has no end on its line"],
    ['root ::= ("a" | "b"', "grammar, line 1: ) is missing"],
    ['root ::= "a")', 'grammar, line 1: ")" is not expected here'],
    ['root = "a"', "grammar, line 1: ::= is missing behind root"],
    ['root ::= "a"\n"b"', "grammar, line 2: a rule must begin with its name"],
    ["root ::= *", 'grammar, line 1: "*" is not expected here'],
    ["root ::= [z-a]", "grammar, line 1: no character is from z to a"],
    ["root ::= []", "grammar, line 1: [] is no character at all"],
    ['root ::= "\\q"', "grammar, line 1: \\q is no character"],
    ['root ::= "\\x4"', "grammar, line 1: \\x is no character"],
    ['root ::= "\\uD800"', "grammar, line 1: \\uD800 is no character"],
    ['root ::= "\\U00110000"', "grammar, line 1: \\U00110000 is no character"],
    ['root ::= "a"{3,2}', "grammar, line 1: {3,2} is no number of times"],
    ['root ::= "a"{x}', "grammar, line 1: {x} is no number of times"],
    ['root ::= "a"{5000}', "grammar, line 1: {5000} is more than 2000 times"],
    ['root ::= ("a"{2000}){2000}', "grammar: its repeats are too many"],
    [
      "root ::= [一-鿿]",
      "grammar, line 1: a set has more than 4096 characters beyond ASCII; [^\\x01-\\x7f] has",
    ],
    ["root ::= [^é]", "grammar, line 1: a set has more than 4096 characters beyond ASCII; "],
    ["root ::= <think>", "grammar, line 1: single tokens cannot be asked for"],
    ["# nothing\n\nroot ::= root", "grammar, line 3: what rule root begins can never end"],
    ['root ::= "a" | x\nx ::= "b" x', "grammar, line 2: what rule x begins can never end"],
    [`root ::= ${"(".repeat(70)}`, "grammar, line 1: groups are nested more than 64 deep"],
    [`root ::= "a"${"?".repeat(70)}`, "grammar, line 1: repeats of repeats are too many"],
    ['root ::= "a"\n'.padEnd(70_000, "#"), "grammar: it has more than 65536 characters"],
  ])("%j", (grammar, message) => {
    expect(refusalOf(grammar)).toStartWith(message);
  });

  test("in little time, however hostile", () => {
    const names = Array.from({ length: 1999 }, (_unused, i) => `a${i}`);
    // Each rule waits for the one behind it.
    const chain = names.map((name, i) => `${name} ::= ${names[i + 1] ?? '"a"'}`);
    const started = performance.now();
    expect(refusalOf(["root ::= a0", ...chain].join("\n"))).toBe("it was taken");
    expect(refusalOf(["root ::= a0", ...chain, "b ::= b"].join("\n"))).toContain("more than 2000");
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

test("a grammar is written anew, with characters by their numbers", () => {
  const grammar = 'root ::= my-rule{2} # twice\nmy-rule ::= [^a-c]? |\n  "é" [\\x01-\\x7f] ';
  expect(checkedGrammar(grammar)).toBe(
    "root ::= (g1){2,2}\n" +
      "g1 ::= ([^\\U00000061-\\U00000063]){0,1} | " +
      '"\\U000000e9" [\\U00000001-\\U0000007f]',
  );
});
