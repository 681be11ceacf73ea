/**
 * Answers of a given shape: which tokens may come next, by the grammar engine XGrammar (Dong et al.
 * 2024) compiled to WebAssembly. It is given grammars of ours, not schemas: of those it passes over
 * parts, takes others wrongly, and aborts on some.
 */
import type { CompiledGrammar, GrammarCompiler, GrammarMatcher } from "@mlc-ai/web-xgrammar";
import { callGrammar } from "../chat/shape/forced-call.ts";
import { BadGrammar } from "../chat/shape/gbnf-reader.ts";
import { checkedGrammar } from "../chat/shape/gbnf.ts";
import { objectGrammar, schemaGrammar } from "../chat/shape/json-schema.ts";
import { UnsupportedSchema } from "../chat/shape/unsupported-schema.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { Refusal } from "./problem.ts";
import type { AnswerShape } from "./protocol.ts";
import type { TokenMask } from "./token-source.ts";

/** Grammars that are remembered. */
const knownMax = 32;
const disposeMs = 1000;

export class Grammars {
  readonly #tokenizer: Tokenizer;
  #compiler: Promise<GrammarCompiler> | undefined;
  readonly #known = new Map<string, Promise<CompiledGrammar>>();

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /** A mask for one answer. Throws a `Refusal` for a shape that cannot be enforced. */
  async compile(shape: AnswerShape): Promise<TokenMask> {
    const { GrammarMatcher } = await import("@mlc-ai/web-xgrammar");
    const compiled = await this.#compiled(grammarOf(shape), paramOf(shape));
    const mask = await MatcherMask.create(await GrammarMatcher.createGrammarMatcher(compiled));
    if (mask.allowed.some((word) => word !== 0)) return mask;
    mask.close();
    throw unsupported("no token of this model begins what is asked for", paramOf(shape));
  }

  #compiled(grammar: string, param: string): Promise<CompiledGrammar> {
    const known = this.#known.get(grammar);
    if (known !== undefined) return known;
    const compiled = this.#compile(grammar, param);
    this.#known.set(grammar, compiled);
    compiled.catch(() => this.#known.delete(grammar));
    this.#makeRoom();
    return compiled;
  }

  async #compile(grammar: string, param: string): Promise<CompiledGrammar> {
    this.#compiler ??= this.#createCompiler();
    const compiler = await this.#compiler;
    try {
      return await compiler.compileGrammar(grammar);
    } catch {
      // It may have left anything behind.
      this.#compiler = undefined;
      throw unsupported(`${param}: the grammar engine refuses it`, param);
    }
  }

  /** WebAssembly's memory is freed by hand. */
  #makeRoom(): void {
    const [oldest] = this.#known;
    if (this.#known.size <= knownMax || oldest === undefined) return;
    const [grammar, compiled] = oldest;
    this.#known.delete(grammar);
    // Whoever has just asked for it makes a matcher of it first.
    setTimeout(() => void compiled.then((one) => one.dispose()), disposeMs);
  }

  async #createCompiler(): Promise<GrammarCompiler> {
    const { GrammarCompiler, TokenizerInfo } = await import("@mlc-ai/web-xgrammar");
    const { vocabSize, endOfGeneration } = this.#tokenizer;
    // Declared as strings, of which it would take the UTF-8; bytes are taken as they are.
    const vocabulary = Array.from({ length: vocabSize }, (_unused, id) =>
      this.#tokenizer.isControl(id) ? new Uint8Array() : this.#tokenizer.tokenBytes(id),
    ) as unknown as string[];
    const ends = [...endOfGeneration];
    const info = await TokenizerInfo.createTokenizerInfo(vocabulary, "raw", false, vocabSize, ends);
    return GrammarCompiler.createGrammarCompiler(info, false);
  }
}

function grammarOf(shape: AnswerShape): string {
  try {
    switch (shape.type) {
      case "json":
        return objectGrammar;
      case "schema":
        return schemaGrammar(shape.schema);
      case "grammar":
        return checkedGrammar(shape.grammar);
      case "call":
        return callGrammar(shape.tools);
    }
  } catch (error) {
    if (error instanceof BadGrammar) {
      const { message } = error;
      throw new Refusal({ kind: "usage", message, param: "grammar", code: "invalid_grammar" });
    }
    if (!(error instanceof UnsupportedSchema)) throw error;
    throw unsupported(error.message, paramOf(shape));
  }
}

/** The field that a shape came from. */
function paramOf({ type }: AnswerShape): string {
  if (type === "grammar") return type;
  return type === "call" ? "tools" : "response_format";
}

function unsupported(message: string, param: string): Refusal {
  return new Refusal({ kind: "usage", message, param, code: "unsupported_schema" });
}

class MatcherMask implements TokenMask {
  readonly #matcher: GrammarMatcher;
  #allowed: Int32Array;

  private constructor(matcher: GrammarMatcher, allowed: Int32Array) {
    this.#matcher = matcher;
    this.#allowed = allowed;
  }

  static async create(matcher: GrammarMatcher): Promise<MatcherMask> {
    return new MatcherMask(matcher, await matcher.getNextTokenBitmask());
  }

  get allowed(): Int32Array {
    return this.#allowed;
  }

  async accept(token: number): Promise<void> {
    if (this.#matcher.isTerminated() || !this.#matcher.acceptToken(token)) return;
    if (!this.#matcher.isTerminated()) this.#allowed = await this.#matcher.getNextTokenBitmask();
  }

  close(): void {
    this.#matcher.dispose();
  }
}
