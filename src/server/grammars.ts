/**
 * Answers of a given shape: which tokens may come next, by the grammar engine XGrammar (Dong et al.
 * 2024) compiled to WebAssembly. Schemas are checked before it sees them, because it aborts on some
 * and passes over parts of others.
 */
import type { CompiledGrammar, GrammarCompiler, GrammarMatcher } from "@mlc-ai/web-xgrammar";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { prepareSchema } from "./json-schema.ts";
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
    const isAnyObject = shape.type === "json";
    const schema = isAnyObject ? { type: "object" } : prepareSchema(shape.schema);
    const { GrammarMatcher } = await import("@mlc-ai/web-xgrammar");
    this.#compiler ??= this.#createCompiler();
    const compiler = await this.#compiler;
    let compiled: CompiledGrammar;
    try {
      // One space behind commas and colons, and no other: small models would go on with it for ever.
      compiled = await compiler.compileJSONSchema(
        JSON.stringify(schema),
        false,
        undefined,
        undefined,
        !isAnyObject,
      );
    } catch {
      // It may have left anything behind.
      this.#compiler = undefined;
      throw new Refusal({
        kind: "usage",
        message: "the schema cannot be enforced: the grammar engine refuses it",
        param: "response_format",
        code: "unsupported_schema",
      });
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
