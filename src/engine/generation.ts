/** What a text or an embedding is asked for with, and how it can end. */
import type { Drafter } from "./drafter.ts";
import type { Sampler } from "./sampler.ts";

export type FinishReason = "stop" | "length" | "cancelled";

export interface GenerationRequest {
  /** Not empty, and no longer than the context. */
  readonly prompt: readonly number[];
  /** Chooses the tokens. It is this text's own: it remembers what it chose. */
  readonly sampler: Sampler;
  /** Tokens after the prompt at most. */
  readonly maxTokens: number;
  /** Tokens that end the text; they are not part of it. */
  readonly endTokens: ReadonlySet<number>;
  readonly signal?: AbortSignal | undefined;
  /** Whom it is for: clients are served alike. */
  readonly client?: string | undefined;
  /** Positions in the prompt at which messages end: likely ends of what other prompts share. */
  readonly boundaries?: readonly number[] | undefined;
  /**
   * The next token waits until the last one was read: the sampler is told something in between, as
   * with a grammar. Else tokens may be made ahead of their reader.
   */
  readonly lockstep?: boolean | undefined;
  /**
   * Called with what the model makes of the prompt, row by row behind the last norm: [rows, width]
   * from a position on, valid during the call. What the cache holds does not come, unless `reuses`
   * is false; a position comes again if the text had to give its place up.
   */
  readonly onHidden?: ((position: number, rows: Float32Array) => void) | undefined;
  /** Whether what the cache holds of the prompt is used; true by default. */
  readonly reuses?: boolean | undefined;
  /**
   * Guesses how it goes on, so that a step may make several tokens; null for nobody, the engine's
   * own by default. It is not asked where the host chooses the tokens.
   */
  readonly drafter?: Drafter | null | undefined;
  /** Called with the number of guesses that a step has verified, and of those that were right. */
  readonly onDrafts?: ((drafted: number, accepted: number) => void) | undefined;
  /** Called when the first rows are computed; so many tokens of the prompt the cache held. */
  readonly onBegin?: ((cachedTokens: number) => void) | undefined;
  /** Called when the prompt is in the cache and the first token is known. */
  readonly onPrefill?: (() => void) | undefined;
}

export interface EmbeddingRequest extends Pick<
  GenerationRequest,
  "prompt" | "client" | "signal" | "onBegin"
> {
  /** The first so many; all by default. */
  readonly dimensions?: number | undefined;
}
