/**
 * Answers of a given shape: which tokens may come next, by the grammar engine XGrammar (Dong et al.
 * 2024) compiled to WebAssembly. It is given grammars of ours, not schemas: of those it passes over
 * parts, takes others wrongly, and aborts on some.
 */
import type { CompiledGrammar, GrammarCompiler, GrammarMatcher } from "@mlc-ai/web-xgrammar";
import { callGrammar } from "../chat/shape/forced-call.ts";
import { objectGrammar, schemaGrammar } from "../chat/shape/json-schema.ts";
import { UnsupportedSchema } from "../chat/shape/unsupported-schema.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { Refusal } from "./problem.ts";
import type { AnswerShape } from "./protocol.ts";
import type { TokenMask } from "./token-source.ts";

export class Grammars {
  readonly #tokenizer: Tokenizer;
  #compiler: Promise<GrammarCompiler> | undefined;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /** A mask for one answer. Throws a `Refusal` for a shape that cannot be enforced. */
  async compile(shape: AnswerShape): Promise<TokenMask> {
    const grammar = grammarOf(shape);
    const { GrammarMatcher } = await import("@mlc-ai/web-xgrammar");
    this.#compiler ??= this.#createCompiler();
    const compiler = await this.#compiler;
    let compiled: CompiledGrammar;
    try {
      compiled = await compiler.compileGrammar(grammar);
    } catch {
      // It may have left anything behind.
      this.#compiler = undefined;
      throw unsupported("schema: the grammar engine refuses it");
    }
    return MatcherMask.create(await GrammarMatcher.createGrammarMatcher(compiled));
  }

  async #createCompiler(): Promise<GrammarCompiler> {
    const { GrammarCompiler, TokenizerInfo } = await import("@mlc-ai/web-xgrammar");
    const { vocabSize, endOfGeneration } = this.#tokenizer;
    const latin1 = new TextDecoder("latin1");
    const vocabulary = Array.from({ length: vocabSize }, (_unused, id) =>
      this.#tokenizer.isControl(id) ? "" : latin1.decode(this.#tokenizer.tokenBytes(id)),
    );
    const ends = [...endOfGeneration];
    const info = await TokenizerInfo.createTokenizerInfo(vocabulary, "raw", false, vocabSize, ends);
    return GrammarCompiler.createGrammarCompiler(info);
  }
}

function grammarOf(shape: AnswerShape): string {
  try {
    if (shape.type === "json") return objectGrammar;
    return shape.type === "schema" ? schemaGrammar(shape.schema) : callGrammar(shape.tools);
  } catch (error) {
    if (!(error instanceof UnsupportedSchema)) throw error;
    throw unsupported(error.message, shape.type === "call" ? "tools" : "response_format");
  }
}

function unsupported(message: string, param = "response_format"): Refusal {
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
