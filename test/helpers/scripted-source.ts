/** Tokens that a test dictates, in the place of an engine. */
import type { FinishReason } from "../../src/engine/generation.ts";
import type {
  EmbeddingRequest,
  MadeToken,
  TokenRequest,
  TokenSource,
} from "../../src/server/token-source.ts";
import { builtinChat } from "./builtin-chat.ts";

/** A text, of which marks such as `<tool_call>` are tokens; or token ids. */
export type Script = string | readonly number[];

export class ScriptedSource implements TokenSource {
  readonly parallel: number;
  /** What each request gets; by default the first script that was given. */
  script: (request: TokenRequest) => Script = () => "";
  /** Pause before each token. */
  pauseMs = 0;
  /** Pause before the first one: the prompt is read. */
  prefillMs = 0;
  /** Requests in the order in which their turn came. */
  readonly begun: TokenRequest[] = [];
  /** Tokens that a mask would not have let through. */
  readonly forbidden: number[] = [];
  /** Texts that are being made. */
  activeCount = 0;
  /** Thrown instead of the token with this number. */
  failure: { readonly at: number; readonly error: Error } | undefined;

  constructor(script: Script = "", parallel = 4) {
    this.script = () => script;
    this.parallel = parallel;
  }

  /** Forgets the requests so far. */
  reset(): void {
    this.begun.length = 0;
  }

  async *generate(request: TokenRequest): AsyncGenerator<MadeToken, FinishReason> {
    while (this.activeCount >= this.parallel) {
      if (await isAborted(request.signal, 5)) return "cancelled";
    }
    this.activeCount++;
    try {
      request.onBegin(0);
      this.begun.push(request);
      return yield* this.#make(request);
    } finally {
      this.activeCount--;
    }
  }

  /** As if the tokens' sum were all that matters; as `generate`, it takes its time and its turn. */
  async embed(request: EmbeddingRequest): Promise<Float32Array | undefined> {
    while (this.activeCount >= this.parallel) {
      if (await isAborted(request.signal, 5)) return undefined;
    }
    this.activeCount++;
    try {
      request.onBegin(0);
      if (await isAborted(request.signal, this.prefillMs)) return undefined;
      const sum = request.prompt.reduce((total, token) => total + token, 0);
      return Float32Array.of(sum, request.prompt.length, 0, 0.5).subarray(0, request.dimensions);
    } finally {
      this.activeCount--;
    }
  }

  async *#make(request: TokenRequest): AsyncGenerator<MadeToken, FinishReason> {
    const { signal, maxTokens, endTokens, logprobs, mask } = request;
    const { tokenizer } = await builtinChat();
    const script = this.script(request);
    const tokens =
      typeof script === "string" ? tokenizer.encode(script, { special: true }) : script;
    if (await isAborted(signal, this.prefillMs)) return "cancelled";
    for (const [i, token] of tokens.entries()) {
      if (this.failure?.at === i) throw this.failure.error;
      if (i >= maxTokens) return "length";
      if (endTokens.has(token)) return "stop";
      if (mask && (((mask.allowed[token >> 5] ?? 0) >> (token & 31)) & 1) === 0) {
        this.forbidden.push(token);
      }
      await mask?.accept(token);
      const top = [token, token + 1, token + 2].map((id, rank) => ({
        token: id,
        logprob: -0.5 - rank,
      }));
      yield { token, logprob: -0.5, top: top.slice(0, logprobs ?? 0) };
      if (await isAborted(signal, this.pauseMs)) return "cancelled";
    }
    return tokens.length >= maxTokens ? "length" : "stop";
  }
}

/** Waits, unless the signal is aborted meanwhile. */
async function isAborted(signal: AbortSignal, ms: number): Promise<boolean> {
  const end = performance.now() + ms;
  do {
    await new Promise((resolve) => setImmediate(resolve));
    if (signal.aborted) return true;
    if (performance.now() < end) await Bun.sleep(Math.min(5, end - performance.now()));
  } while (performance.now() < end);
  return signal.aborted;
}
