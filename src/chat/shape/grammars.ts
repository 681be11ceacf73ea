/**
 * Answers of a given shape: which tokens may come next, by the grammar engine XGrammar (Dong et al.
 * 2024) compiled to WebAssembly. It is given grammars of ours, not schemas: of those it passes over
 * parts, takes others wrongly, and aborts on some.
 */
import type { CompiledGrammar, GrammarCompiler, GrammarMatcher } from "@mlc-ai/web-xgrammar";
import { callGrammar } from "./forced-call.ts";
import { BadGrammar } from "./gbnf-reader.ts";
import { checkedGrammar } from "./gbnf.ts";
import { objectGrammar, schemaGrammar } from "./json-schema.ts";
import { UnsupportedSchema } from "./unsupported-schema.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import { BadShape, type AnswerShape } from "./answer-shape.ts";
import { isDeadEnd, type TokenMask } from "./token-mask.ts";

/** Grammars that are remembered. */
const knownMax = 32;
const disposeMs = 1000;

/** Makes the masks of answers. */
export interface MaskMaker {
  /** A mask for one answer. Throws a `BadShape` for a shape that cannot be enforced. */
  compile(shape: AnswerShape): Promise<TokenMask>;
  close(): void;
}

export interface GrammarVocabulary {
  /** Of control tokens, which no grammar spells, none. */
  readonly tokens: readonly Uint8Array[];
  readonly ends: readonly number[];
}

export function vocabularyOf(tokenizer: Tokenizer): GrammarVocabulary {
  const { vocabSize, endOfGeneration } = tokenizer;
  const tokens = Array.from({ length: vocabSize }, (_unused, id) =>
    tokenizer.isControl(id) ? new Uint8Array() : tokenizer.tokenBytes(id),
  );
  return { tokens, ends: [...endOfGeneration] };
}

export class Grammars implements MaskMaker {
  readonly #vocabulary: () => GrammarVocabulary;
  #compiler: Promise<GrammarCompiler> | undefined;
  readonly #known = new Map<string, Promise<CompiledGrammar>>();

  /** The vocabulary is asked for when it is needed. */
  constructor(vocabulary: () => GrammarVocabulary) {
    this.#vocabulary = vocabulary;
  }

  close(): void {
    for (const compiled of this.#known.values()) void compiled.then((one) => one.dispose());
    this.#known.clear();
  }

  async compile(shape: AnswerShape): Promise<TokenMask> {
    const { GrammarMatcher } = await import("@mlc-ai/web-xgrammar");
    const compiled = await this.#compiled(grammarOf(shape), shape.type);
    const mask = await MatcherMask.create(await GrammarMatcher.createGrammarMatcher(compiled));
    if (!isDeadEnd(mask)) return mask;
    mask.close();
    throw new BadShape("no token of this model begins what is asked for", shape.type);
  }

  #compiled(grammar: string, type: AnswerShape["type"]): Promise<CompiledGrammar> {
    const known = this.#known.get(grammar);
    if (known !== undefined) return known;
    const compiled = this.#compile(grammar, type);
    this.#known.set(grammar, compiled);
    compiled.catch(() => this.#known.delete(grammar));
    this.#makeRoom();
    return compiled;
  }

  async #compile(grammar: string, type: AnswerShape["type"]): Promise<CompiledGrammar> {
    this.#compiler ??= this.#createCompiler();
    const compiler = await this.#compiler;
    try {
      return await compiler.compileGrammar(grammar);
    } catch {
      // It may have left anything behind.
      this.#compiler = undefined;
      throw new BadShape(`${type}: the grammar engine refuses it`, type);
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
    const { tokens, ends } = this.#vocabulary();
    // Declared as strings, of which it would take the UTF-8; bytes are taken as they are.
    const texts = tokens as unknown as string[];
    const size = tokens.length;
    const info = await TokenizerInfo.createTokenizerInfo(texts, "raw", false, size, [...ends]);
    return GrammarCompiler.createGrammarCompiler(info, false);
  }
}

/** Throws a `BadShape` for a shape that cannot be enforced, whatever the model. */
export function requireShape(shape: AnswerShape): void {
  grammarOf(shape);
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
    const { type } = shape;
    if (error instanceof BadGrammar) throw new BadShape(error.message, type, "invalid_grammar");
    if (!(error instanceof UnsupportedSchema)) throw error;
    throw new BadShape(error.message, type);
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
