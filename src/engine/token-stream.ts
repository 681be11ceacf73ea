/** One text in the making, from when it is asked for until it is complete. */
import { checkpointPositions, nextCheckpoint } from "./checkpoint-positions.ts";
import type { Residence } from "./residence.ts";

/** What is asked for. */
export interface TokenRequest {
  /** Not empty, and no longer than a sequence may be. */
  readonly prompt: readonly number[];
  /** Tokens behind the prompt at most, 1 or more. */
  readonly maxTokens: number;
  /** Whom it is for: clients are served alike. */
  readonly client?: string | undefined;
  /** Positions at which messages end: likely ends of prefixes that others share. */
  readonly boundaries?: readonly number[] | undefined;
  /** Whether what the cache holds of the prompt is used; true by default. */
  readonly reuses?: boolean | undefined;
}

export class TokenStream {
  /** Older streams have lower ones. */
  readonly id: number;
  readonly client: string;
  readonly promptLength: number;
  readonly maxTokens: number;
  readonly reuses: boolean;
  /** All that are known. */
  readonly tokens: number[];
  /** Steps under way whose ids are not known yet. */
  pendingCount = 0;
  /** Guesses of what follows the tokens, for the next step. */
  drafts: readonly number[] = [];
  /** Guesses that a step under way verifies: until then nobody knows where it stands. */
  verifyingCount = 0;
  /** Drafts were wrong, and the rows before them are due again. */
  isReplaying = false;
  residence: Residence | undefined;
  /** Positions that its client was charged for. */
  chargedLength = 0;
  /** Tokens of the prompt that need not have been computed when it began. */
  cachedTokens = 0;
  isOver = false;
  /** Whoever asked for it is not ready for its next token. */
  isHeld = false;
  readonly #checkpoints: readonly number[];
  readonly #interval: number;

  /** Checkpoints come every `interval` tokens and at boundaries; never if it is infinite. */
  constructor(id: number, request: TokenRequest, interval: number) {
    const { prompt, maxTokens, client = "", boundaries = [], reuses = true } = request;
    this.id = id;
    this.client = client;
    this.promptLength = prompt.length;
    this.maxTokens = maxTokens;
    this.reuses = reuses;
    this.tokens = [...prompt];
    this.#interval = interval;
    this.#checkpoints = Number.isFinite(interval)
      ? checkpointPositions(prompt.length, boundaries, interval)
      : [];
  }

  /** Tokens that exist, also those whose ids are not known yet. */
  get length(): number {
    return this.tokens.length + this.pendingCount;
  }

  /** Tokens behind the prompt. */
  get madeCount(): number {
    return this.length - this.promptLength;
  }

  /** Rows that must be computed before there is another token. */
  get dueCount(): number {
    return this.length - (this.residence?.length ?? 0);
  }

  /** The next step makes its next token. */
  get isDecoding(): boolean {
    return this.residence?.hasBegun === true && (this.dueCount === 1 || this.isReplaying);
  }

  /** All of its tokens are known, and the next one is wanted. */
  get isReady(): boolean {
    return this.pendingCount === 0 && !this.isHeld;
  }

  /** The first position behind `position` at which recurrent state is kept. */
  checkpointAfter(position: number): number {
    if (!Number.isFinite(this.#interval)) return Number.POSITIVE_INFINITY;
    return nextCheckpoint(this.#checkpoints, this.promptLength, this.#interval, position);
  }
}

/** The texts that make a token with their next row, dealt out evenly over some steps. */
export function decodingShare(streams: Iterable<TokenStream>, stepCount: number): number {
  let count = 0;
  for (const { isDecoding } of streams) if (isDecoding) count++;
  return Math.ceil(count / stepCount);
}
