/**
 * Grammars of users, in the notation of llama.cpp (GBNF): rules of literals, sets of characters,
 * references, groups and repeats. They are read and written anew, because the grammar engine behind
 * aborts on mistakes, and because what can never end would leave a model without a next token.
 */
import { spellCode } from "./character-set.ts";
import {
  BadGrammar,
  codeOf,
  GrammarReader,
  type Element,
  type Rule,
  type Sequence,
} from "./gbnf-reader.ts";

/** Repeats within repeats multiply; more states than these are no grammar for people. */
const elementsMax = 20_000;

/** The same grammar as the engine takes it. Throws `BadGrammar`, which names the line. */
export function checkedGrammar(text: string): string {
  const rules = new GrammarReader(text).read();
  if (!rules.has("root")) throw new BadGrammar("it has no rule root", undefined);
  for (const rule of rules.values()) requireRules(rule, rules);
  const ending = endingRules(rules);
  for (const [name, { line }] of rules) {
    if (!ending.has(name)) throw new BadGrammar(`what rule ${name} begins can never end`, line);
  }
  const size = [...rules.values()].reduce((sum, { options }) => sum + sizeOf(options), 0);
  if (size > elementsMax) throw new BadGrammar("its repeats are too many", undefined);
  // The engine has less room in names than users have.
  const names = new Map(
    [...rules.keys()].map((name, i) => [name, name === "root" ? name : `g${i}`]),
  );
  const write = new GrammarWriter(names);
  return [...rules].map(([name, { options }]) => write.rule(name, options)).join("\n");
}

function requireRules({ line, options }: Rule, rules: ReadonlyMap<string, Rule>): void {
  for (const name of references(options)) {
    if (!rules.has(name)) throw new BadGrammar(`there is no rule ${name}`, line);
  }
}

function references(options: readonly Sequence[]): string[] {
  return options.flat().flatMap((element) => {
    if (element.type === "rule") return [element.name];
    if (element.type === "group") return references(element.options);
    return element.type === "repeat" ? references([[element.element]]) : [];
  });
}

/** Those from which some text can be made, by going on until nothing is added. */
function endingRules(rules: ReadonlyMap<string, Rule>): ReadonlySet<string> {
  const ending = new Set<string>();
  const ends = (element: Element): boolean => {
    if (element.type === "rule") return ending.has(element.name);
    if (element.type === "group") return element.options.some((option) => option.every(ends));
    return element.type !== "repeat" || element.min === 0 || ends(element.element);
  };
  for (let before = -1; before < ending.size;) {
    before = ending.size;
    for (const [name, { options }] of rules) {
      if (!ending.has(name) && options.some((option) => option.every(ends))) ending.add(name);
    }
  }
  return ending;
}

function sizeOf(options: readonly Sequence[]): number {
  return options.flat().reduce((sum, element) => {
    if (element.type === "group") return sum + 1 + sizeOf(element.options);
    if (element.type !== "repeat") return sum + 1;
    return sum + Math.max(element.max ?? element.min, 1) * (1 + sizeOf([[element.element]]));
  }, 0);
}

class GrammarWriter {
  readonly #names: ReadonlyMap<string, string>;

  constructor(names: ReadonlyMap<string, string>) {
    this.#names = names;
  }

  rule(name: string, options: readonly Sequence[]): string {
    return `${this.#names.get(name)} ::= ${this.#options(options)}`;
  }

  #options(options: readonly Sequence[]): string {
    const written = options.map((option) => option.map((one) => this.#element(one)).join(" "));
    return written.map((option) => (option === "" ? '""' : option)).join(" | ");
  }

  #element(element: Element): string {
    switch (element.type) {
      case "text":
        return `"${[...element.text].map((one) => spellCode(codeOf(one))).join("")}"`;
      case "set":
        return element.written;
      case "rule":
        return this.#names.get(element.name) ?? "";
      case "group":
        return `(${this.#options(element.options)})`;
      case "repeat": {
        const { min, max } = element;
        if (max === 0) return '""';
        return `(${this.#element(element.element)}){${min},${max ?? ""}}`;
      }
    }
  }
}
