/**
 * Where the server's tokens come from: what lies between the requests and the engine. Several texts
 * may be asked for at once; how many are made side by side is the source's business.
 */
import type { TokenMask } from "../chat/shape/token-mask.ts";
import type { FinishReason } from "../engine/generation.ts";
import type { Sampling } from "../engine/sampling.ts";

export interface TokenRequest {
  /** Not empty, and with room behind it in the context. */
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly sampling: Sampling;
  /** Tokens that end the text; they are not part of it. */
  readonly endTokens: ReadonlySet<number>;
  readonly client: string;
  /** Positions in the prompt at which messages end. */
  readonly boundaries: readonly number[];
  /** How many alternatives to each token are wanted with their logprobs. */
  readonly logprobs: number | undefined;
  readonly mask: TokenMask | undefined;
  readonly signal: AbortSignal;
  /** The text's turn has come; so many tokens of its prompt are in the cache. */
  readonly onBegin: (cachedTokens: number) => void;
}

export interface ScoredToken {
  readonly token: number;
  /** Natural logarithm of its probability, before temperature and filters. */
  readonly logprob: number;
}

export interface MadeToken extends ScoredToken {
  /** Best first; empty unless asked for. */
  readonly top: readonly ScoredToken[];
}

export interface EmbeddingRequest extends Pick<
  TokenRequest,
  "prompt" | "client" | "signal" | "onBegin"
> {
  readonly dimensions: number | undefined;
}

export interface TokenSource {
  /** Texts that are made side by side. */
  readonly parallel: number;
  generate(request: TokenRequest): AsyncGenerator<MadeToken, FinishReason>;
  /** Of length 1; undefined if the signal ends it. */
  embed(request: EmbeddingRequest): Promise<Float32Array | undefined>;
}
