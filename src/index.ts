/**
 * The library: load a model, make text.
 *
 *     import { load } from "zinc";
 *     const model = await load("model.gguf");
 *     for await (const piece of model.generate("Why is the sky blue?")) {
 *       process.stdout.write(piece);
 *     }
 *     model.close();
 */
import { openBuiltin } from "./builtin/builtin.ts";
import { AnswerReader } from "./chat/answer-reader.ts";
import type { Part } from "./chat/answer.ts";
import { chatPrompt, type ChatFormat, type ChatRequest } from "./chat/chat-prompt.ts";
import {
  Generation,
  requireCount,
  requireDimensions,
  requirePrompt,
  type GenerateOptions,
  type Prompt,
} from "./chat/generation.ts";
import type { AnswerStart } from "./chat/output/answer-start.ts";
import { formatOf, type OutputFormat } from "./chat/output/format.ts";
import {
  encodeDocument,
  encodeRaw,
  resolveTemplate,
  type ResolvedTemplate,
} from "./chat/prompt.ts";
import { answerMask } from "./chat/shape/answer-mask.ts";
import type { AnswerFormat } from "./chat/shape/answer-shape.ts";
import { Grammars, vocabularyOf } from "./chat/shape/grammars.ts";
import type { TokenMask } from "./chat/shape/token-mask.ts";
import { TextReader, type TokenReader } from "./chat/token-reader.ts";
import type { DraftSource } from "./engine/drafter.ts";
import { cacheTypes, type KvTypeName } from "./engine/cache-types.ts";
import { Engine } from "./engine/engine.ts";
import type { MemoryPlan } from "./engine/plan.ts";
import type { Sequence } from "./engine/sequence.ts";
import type { TuningProgress } from "./engine/tuner.ts";
import { UserError } from "./errors.ts";
import { openGguf, type GgufFile } from "./gguf/file.ts";
import { describeModel } from "./model/architectures.ts";
import type { ModelConfig } from "./model/config.ts";
import type { UploadProgress } from "./model/upload.ts";
import { cacheFolder } from "./paths.ts";
import { createTokenizer, type EncodeOptions, type Tokenizer } from "./tokenizer/tokenizer.ts";
import { Gpu } from "./vulkan/gpu.ts";
import { Result, VulkanError } from "./vulkan/result.ts";

export { UserError } from "./errors.ts";
export { defaultSampling, type Sampling } from "./engine/sampling.ts";
export type { MemoryPlan } from "./engine/plan.ts";
export type { KvTypeName } from "./engine/cache-types.ts";
export type { Answer, Part, ToolCall } from "./chat/answer.ts";
export type { ChatRequest } from "./chat/chat-prompt.ts";
export type { AnswerFormat } from "./chat/shape/answer-shape.ts";
export type { ChatMessage } from "./chat/messages.ts";
export type { Thinking } from "./chat/thinking.ts";
export type { Generation, GenerateOptions, GenerationResult, Prompt } from "./chat/generation.ts";

export interface LoadOptions {
  /** Index or part of a device's name; the best one by default. */
  readonly device?: string | undefined;
  /** Several instead, over which the layers are spread by what each has free. */
  readonly devices?: readonly string[] | undefined;
  /** Bytes to take of each device at most, in their order; one number holds for all. */
  readonly deviceMemory?: readonly number[] | undefined;
  /** Tokens that prompt and answer share; as many as fit by default, at most the model's own. */
  readonly contextTokens?: number | undefined;
  /** No longer than this, where as many as fit are taken. */
  readonly contextTokensMax?: number | undefined;
  /** Texts that are made side by side, as far as memory allows; others wait. 8 by default. */
  readonly parallel?: number | undefined;
  /** Tokens that all texts share, those that are remembered included. */
  readonly cacheTokens?: number | undefined;
  /** States of recurrent layers that are kept for prompts that begin alike, at most. */
  readonly checkpoints?: number | undefined;
  /** What the cache keeps keys and values as: "tq4", "q8_0,tq4"; "f16" by default. */
  readonly kvType?: KvTypeName | undefined;
  /** Results do not depend on how many rows of work share a step; somewhat slower. */
  readonly deterministic?: boolean | undefined;
  /**
   * Who guesses tokens ahead, so that a step may verify several: the text's own past ("ngram", the
   * default on a GPU), layers of the model, if the file has them ("mtp"), or nobody ("off").
   */
  readonly drafts?: DraftSource | undefined;
  /** A chat template (Jinja) instead of the model's own. */
  readonly template?: string | undefined;
  /** Where compiled pipelines are kept; the user's cache folder by default, nowhere if null. */
  readonly cacheFolder?: string | null | undefined;
  /** Time every dispatch (`profile`); slower. */
  readonly profile?: boolean | undefined;
  /**
   * Measure anew how kernels are laid out best, or do without. By default a GPU's first start
   * measures what `cacheFolder` does not know. Nothing is measured if `deterministic`.
   */
  readonly tune?: boolean | undefined;
  /** Told what seems wrong and does not stop the work. */
  readonly onWarning?: ((message: string) => void) | undefined;
  /** Told what will be allocated, before it is. */
  readonly onPlan?: ((plan: MemoryPlan) => void) | undefined;
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined;
  readonly onTuning?: ((progress: TuningProgress) => void) | undefined;
}

export interface EmbedOptions {
  /** The first so many, for models that were made to be cut; all by default. */
  readonly dimensions?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** More than a step has rows for. */
const parallelMax = 256;

/** Opens a model file, or the model inside the executable if no path is given. */
export async function openModelFile(path?: string): Promise<GgufFile> {
  return path === undefined ? openBuiltin() : openGguf(path);
}

/** The tokenizer of a file, if it has one; errors name the file. */
export function openTokenizer(
  file: GgufFile,
  warn: (message: string) => void = () => {},
): Tokenizer | undefined {
  try {
    return createTokenizer(file.metadata, warn);
  } catch (error) {
    const [name = ""] = file.fileNames;
    if (!(error instanceof UserError) || error.message.includes(name)) throw error;
    const { kind, message, remedy = "take another file, or a newer zinc" } = error;
    throw new UserError(kind, `${name}: ${message}`, remedy, { cause: error });
  }
}

/**
 * Loads a GGUF model onto a device; without a path, the small model that zinc brings. Throws
 * `UserError`: its `kind` says whether the model, the device, its memory or the options are the
 * reason.
 */
export async function load(path?: string, options: LoadOptions = {}): Promise<LanguageModel> {
  const started = performance.now();
  const { contextTokens, contextTokensMax, onWarning: warn = () => {} } = options;
  const { parallel = 8, cacheTokens, checkpoints } = options;
  const { device, devices, deviceMemory, tune, onTuning: onProgress } = options;
  if (contextTokens !== undefined) requireCount("contextTokens", contextTokens, 1);
  if (contextTokensMax !== undefined) requireCount("contextTokensMax", contextTokensMax, 1);
  if (cacheTokens !== undefined) requireCount("cacheTokens", cacheTokens, 1);
  if (checkpoints !== undefined) requireCount("checkpoints", checkpoints, 0);
  requireCount("parallel", parallel, 1);
  for (const byteSize of deviceMemory ?? []) requireCount("deviceMemory", byteSize, 1);
  const kvTypes = cacheTypes(options.kvType ?? "f16");
  using opened = new DisposableStack();
  const file = opened.use(await openModelFile(path));
  const describe = () => describeModel(file, { predicts: options.drafts === "mtp" });
  // What is wrong with it is said before a device is opened; each device takes a description.
  const models = [describe()];
  const tokenizer = openTokenizer(file, warn);
  const template = resolveTemplate(file.metadata, tokenizer, options.template);
  if (template?.problem !== undefined) {
    warn(`the model's chat template cannot be used (${template.problem}); ChatML stands in for it`);
  }
  const { cacheFolder: wanted = cacheFolder() } = options;
  const folder = wanted ?? undefined;
  const gpus = Gpu.openAll({ device, devices, cacheFolder: folder, warn });
  for (const gpu of gpus) opened.defer(() => gpu.close());
  const engine = await Engine.loadOver(gpus, () => models.pop() ?? describe(), {
    memoryBytes: deviceMemory,
    contextTokens,
    contextTokensMax,
    cacheTokens,
    checkpoints,
    kvTypes,
    parallel: Math.min(parallel, parallelMax),
    deterministic: options.deterministic === true,
    ...{ profile: options.profile === true, drafts: options.drafts },
    tuning: tune === false ? undefined : { folder, anew: tune, onWarning: warn, onProgress },
    ...(options.onPlan && { onPlan: options.onPlan }),
    ...(options.onProgress && { onProgress: options.onProgress }),
  });
  opened.defer(() => engine.close());
  return new LanguageModel({
    engine,
    tokenizer,
    template,
    owned: opened.move(),
    loadMs: performance.now() - started,
  });
}

/** Whether an error means that the device is gone, with everything that was on it. */
export function isDeviceLost(error: unknown): boolean {
  return error instanceof VulkanError && error.result === Result.ERROR_DEVICE_LOST;
}

interface Parts {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer | undefined;
  readonly template: ResolvedTemplate | undefined;
  readonly owned: DisposableStack;
  readonly loadMs: number;
}

/** A prompt, and how the answer begins behind it. */
interface Encoded {
  readonly tokens: readonly number[];
  readonly start?: AnswerStart;
  readonly output?: OutputFormat;
}

interface Beginning<Piece> {
  readonly prompt: readonly number[];
  readonly reader: TokenReader<Piece>;
  readonly beginning: Omit<Encoded, "tokens"> & { readonly takesCalls?: boolean };
}

/** A model on a device. Texts may be asked for at once; they are made side by side. */
export class LanguageModel implements Disposable {
  /** The engine below, for measuring and for experiments. */
  readonly engine: Engine;
  readonly loadMs: number;
  readonly template: ResolvedTemplate | undefined;
  readonly #tokenizer: Tokenizer | undefined;
  readonly #owned: DisposableStack;
  #chatFormat: ChatFormat | undefined;
  #grammars: Grammars | undefined;
  readonly #closing = new AbortController();

  /** Use `load`. */
  constructor({ engine, tokenizer, template, owned, loadMs }: Parts) {
    this.engine = engine;
    this.loadMs = loadMs;
    this.template = template;
    this.#tokenizer = tokenizer;
    this.#owned = owned;
  }

  get config(): ModelConfig {
    return this.engine.model.config;
  }

  /** Tokens that prompt and answer may have together. */
  get contextTokens(): number {
    return this.engine.plan.contextTokens;
  }

  /** Whether text goes in and comes out, or only ids. */
  get hasTokenizer(): boolean {
    return this.#tokenizer !== undefined;
  }

  /** Throws if the file brings no tokenizer; then only ids can be fed. */
  get tokenizer(): Tokenizer {
    if (this.#tokenizer !== undefined) return this.#tokenizer;
    throw new UserError(
      "model",
      `${this.config.name} has no tokenizer`,
      "feed ids with --tokens 1,2,3",
    );
  }

  /**
   * Token ids of a text. Special tokens in it are plain text unless `special`. No BOS or EOS is
   * added.
   */
  tokenize(text: string, options: EncodeOptions = {}): number[] {
    return this.tokenizer.encode(text, options);
  }

  /**
   * Continues a prompt. A text is put into the model's chat template if it has one, unless `raw`.
   * Iterate over the pieces of text as they come, thoughts and calls included, or await `result`.
   */
  generate(prompt: Prompt, options: GenerateOptions = {}): Generation {
    const reader = new TextReader(this.#tokenizer, options.stop);
    const { tokens, ...beginning } = this.#encode(prompt, options);
    return this.#generation({ prompt: tokens, reader, beginning }, options);
  }

  /**
   * Answers a conversation, as the model's chat template shows it. Iterate over the parts of the
   * answer as they come, or await `result`. Throws a "usage" error if the template refuses it.
   */
  chat(request: ChatRequest, options: GenerateOptions = {}): Generation<Part> {
    const { tokenizer, output } = this.chatFormat;
    const { tokens, start } = chatPrompt(this.chatFormat, request, options.now);
    const { tools = [] } = request;
    const reader = new AnswerReader(tokenizer, output, { start, tools }, options.stop);
    const beginning = { start, output, takesCalls: tools.length > 0 };
    return this.#generation({ prompt: tokens, reader, beginning }, options);
  }

  /** How conversations are written and read. Throws a "model" error without a chat template. */
  get chatFormat(): ChatFormat {
    const { tokenizer, template: resolved } = this;
    if (resolved === undefined) {
      throw new UserError(
        "model",
        `${this.config.name} has no chat template`,
        "give one with --template, or a prompt with --prompt",
      );
    }
    const { template } = resolved;
    const { source } = template;
    this.#chatFormat ??= { tokenizer, template, output: formatOf(source, tokenizer) };
    return this.#chatFormat;
  }

  /**
   * The embedding of a text: a vector of length 1 in whose direction texts of like meaning lie.
   * Texts that are asked for at once share the steps. Throws a "usage" error if there are fewer
   * `dimensions` than asked for, or the signal's reason if it ends the work.
   */
  async embed(text: Prompt, options: EmbedOptions = {}): Promise<Float32Array> {
    const { dimensions, signal } = options;
    const closing = this.#open();
    if (dimensions !== undefined) requireDimensions(this.engine, dimensions);
    const prompt =
      typeof text === "string" ? encodeDocument(this.tokenizer, text) : [...text.tokens];
    requirePrompt(this.engine, prompt);
    const ending = AbortSignal.any([closing, ...(signal === undefined ? [] : [signal])]);
    const vector = await this.engine.embed({ prompt, dimensions, signal: ending });
    if (vector !== undefined) return vector;
    signal?.throwIfAborted();
    throw new UserError("failed", "the model was closed");
  }

  /** The logits behind the last of some tokens: [vocabularySize]. */
  logits(tokens: readonly number[]): Float32Array {
    return this.#withSequence(tokens, (sequence) => this.engine.append(sequence, tokens).slice());
  }

  /** The logits behind each of some tokens, in order; an array is valid only during its call. */
  forEachLogits(
    tokens: readonly number[],
    onLogits: (index: number, logits: Float32Array) => void,
  ): void {
    this.#withSequence(tokens, (sequence) => this.engine.appendAll(sequence, tokens, onLogits));
  }

  /** Frees the device. A text in the making ends as cancelled; the model cannot be used again. */
  close(): void {
    this.#closing.abort();
    this.#owned.dispose();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #encode(prompt: Prompt, { raw = false, now }: GenerateOptions): Encoded {
    if (typeof prompt !== "string") return { tokens: prompt.tokens };
    if (prompt === "") return { tokens: [] };
    if (raw || this.template === undefined) return { tokens: encodeRaw(this.tokenizer, prompt) };
    const messages = [{ role: "user", content: prompt }];
    const { output } = this.chatFormat;
    return { ...chatPrompt(this.chatFormat, { messages }, now), output };
  }

  #generation<Piece>(
    { prompt, reader, beginning }: Beginning<Piece>,
    options: GenerateOptions,
  ): Generation<Piece> {
    const { format } = options;
    const mask = format && (() => this.#maskOf(format, beginning));
    const open = () => this.#open();
    const { engine } = this;
    const tokenizer = this.#tokenizer;
    return new Generation({ engine, tokenizer, prompt, reader, mask, open }, options);
  }

  async #maskOf(
    format: AnswerFormat,
    { start, output, takesCalls = false }: Beginning<unknown>["beginning"],
  ): Promise<TokenMask> {
    const { tokenizer } = this;
    this.#grammars ??= new Grammars(() => vocabularyOf(tokenizer));
    const mask = await this.#grammars.compile(format);
    return answerMask(mask, { tokenizer, format: output, start, takesCalls });
  }

  #open(): AbortSignal {
    const { signal } = this.#closing;
    if (signal.aborted) throw new UserError("failed", "the model is closed", "load it again");
    return signal;
  }

  #withSequence<T>(tokens: readonly number[], use: (sequence: Sequence) => T): T {
    this.#open();
    const sequence = this.engine.createSequence();
    try {
      requirePrompt(this.engine, tokens);
      return use(sequence);
    } finally {
      this.engine.release(sequence);
    }
  }
}
