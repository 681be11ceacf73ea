/**
 * What the HTTP thread and the engine's Worker say to each other. Everything can be cloned from one
 * thread to the other.
 */
import type { Part } from "../chat/answer.ts";
import type { ChatRequest } from "../chat/chat-prompt.ts";
import type { AnswerShape } from "../chat/shape/answer-shape.ts";
import type { DraftSource } from "../engine/drafter.ts";
import type { Sampling } from "../engine/sampling.ts";
import type { ErrorKind } from "../errors.ts";
import type { KvTypeName } from "../index.ts";

/** What to load, and where. */
export interface ModelOptions {
  /** A GGUF file; the model inside zinc if there is none. */
  readonly path: string | undefined;
  readonly device: string | undefined;
  readonly devices?: readonly string[] | undefined;
  readonly deviceMemory?: readonly number[] | undefined;
  readonly contextTokens: number | undefined;
  readonly contextTokensMax?: number | undefined;
  /** Of the cache; halves by default. */
  readonly kvType: KvTypeName | undefined;
  /** Texts that are made side by side at most. */
  readonly parallel: number;
  readonly deterministic: boolean;
  /** Who guesses tokens ahead; by default what suits the device. */
  readonly drafts: DraftSource | undefined;
  /** A chat template instead of the model's own. */
  readonly template: string | undefined;
}

/** What is known of a model once it is loaded. */
export interface ModelFacts {
  readonly name: string;
  readonly architecture: string;
  readonly contextTokens: number;
  readonly trainedContextTokens: number;
  readonly vocabularySize: number;
  /** Dimensions of its embeddings. */
  readonly width: number;
  readonly deviceName: string;
  readonly deviceBytes: number;
  /** What was free on the device before the model came. */
  readonly deviceBudgetBytes: number;
  /** Tokens that the cache of keys and values has room for. */
  readonly cacheTokens: number;
  /** What it keeps of each, for people. */
  readonly cache: string;
  readonly loadMs: number;
  readonly hasTokenizer: boolean;
  /** The chat template's text; undefined if there is none. */
  readonly template: string | undefined;
  readonly templateSource: "given" | "model" | "fallback" | undefined;
  /** Texts that are made side by side. */
  readonly parallel: number;
}

export type WorkPrompt =
  | {
      readonly type: "chat";
      readonly request: ChatRequest;
      /** Whether calls of tools are looked for. */
      readonly calls: boolean;
    }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "tokens"; readonly tokens: readonly number[] };

/** One text that is asked for. */
export interface Work {
  readonly type: "answer";
  readonly prompt: WorkPrompt;
  /** Whom it is for: clients are served alike. */
  readonly client: string;
  readonly sampling: { readonly [K in keyof Sampling]?: Sampling[K] | undefined };
  readonly maxTokens: number | undefined;
  readonly stop: readonly string[];
  readonly ignoreEos: boolean;
  /** How many alternatives to each token are wanted with its logprob; undefined for neither. */
  readonly logprobs: number | undefined;
  readonly shape: AnswerShape | undefined;
}

/** A text whose embedding is asked for. */
export interface EmbeddingWork {
  readonly type: "embedding";
  readonly input: string | readonly number[];
  readonly client: string;
  /** The first so many; all if there is no number. */
  readonly dimensions: number | undefined;
  /** What does not fit the context is cut off; else it is refused. */
  readonly truncates: boolean;
}

export interface TokenLogprob {
  readonly id: number;
  readonly text: string;
  readonly bytes: readonly number[];
  readonly logprob: number;
}

export interface LogprobEntry extends TokenLogprob {
  /** Best first. */
  readonly top: readonly TokenLogprob[];
}

/** What a token or a few added to an answer. */
export interface Piece {
  readonly parts: readonly Part[];
  readonly logprobs: readonly LogprobEntry[];
}

export interface Finish {
  readonly reason: "stop" | "length" | "cancelled";
  /** The stop string that ended the text, if one did. */
  readonly stopString: string | undefined;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly tokens: number;
  readonly reasoningTokens: number;
  /** Milliseconds that the text waited for its turn, until its first token, and from there on. */
  readonly queueMs: number;
  readonly prefillMs: number;
  readonly decodeMs: number;
  /** What was made instead of a text, if that was asked for. */
  readonly embedding?: Float32Array | undefined;
}

/** An error on its way to the other thread. */
export interface Problem {
  readonly kind: ErrorKind | "bug";
  readonly message: string;
  /** The field of the request that is to blame. */
  readonly param?: string | undefined;
  readonly code?: string | undefined;
  /** More for programs, such as `n_ctx`. */
  readonly details?: Readonly<Record<string, number | string>> | undefined;
}

/** How full the engine is, and what it has done since it was started. */
export interface EngineGauges {
  /** Blocks of the cache that hold nothing. */
  readonly freeBlocks: number;
  /** Blocks that hold prefixes nobody uses now. */
  readonly idleBlocks: number;
  readonly steps: number;
  /** Rows of work in all steps. */
  readonly rows: number;
  readonly preemptions: number;
  /** Guesses of tokens that were verified, and those of them that were right. */
  readonly drafted: number;
  readonly accepted: number;
}

/** Small things that need no device. */
export type Question =
  | { readonly type: "gauges" }
  | { readonly type: "tokenize"; readonly text: string; readonly special: boolean }
  | { readonly type: "detokenize"; readonly tokens: readonly number[] }
  | { readonly type: "template"; readonly request: ChatRequest };

export type Reply =
  | { readonly type: "tokens"; readonly tokens: readonly number[]; readonly texts: string[] }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "gauges"; readonly gauges: EngineGauges }
  | { readonly type: "prompt"; readonly text: string; readonly tokenCount: number };

/** How a test lets the engine die. */
export type Calamity = "device-lost" | "crash";

export type ToEngine =
  | { readonly type: "load"; readonly options: ModelOptions }
  | { readonly type: "start"; readonly id: number; readonly work: Work | EmbeddingWork }
  | { readonly type: "cancel"; readonly id: number }
  | { readonly type: "ask"; readonly id: number; readonly question: Question }
  | { readonly type: "suffer"; readonly calamity: Calamity }
  | { readonly type: "close" };

export type FromEngine =
  | { readonly type: "progress"; readonly doneBytes: number; readonly totalBytes: number }
  | { readonly type: "warning"; readonly message: string }
  | { readonly type: "ready"; readonly facts: ModelFacts }
  /** Nothing was loaded. */
  | { readonly type: "unloadable"; readonly problem: Problem }
  /** The device is gone, and with it all work. This is the last message. */
  | { readonly type: "lost"; readonly problem: Problem }
  | { readonly type: "accepted"; readonly id: number; readonly promptTokens: number }
  /** The end of work or of a question that failed. */
  | { readonly type: "refused"; readonly id: number; readonly problem: Problem }
  | { readonly type: "piece"; readonly id: number; readonly piece: Piece }
  | { readonly type: "finished"; readonly id: number; readonly finish: Finish }
  | { readonly type: "replied"; readonly id: number; readonly reply: Reply }
  | { readonly type: "closed" };

/** The way to an engine, wherever it runs. */
export interface EnginePort {
  send(message: ToEngine): void;
  /** Ends it without asking. */
  kill(): void;
}
