/**
 * Masks from a thread of their own, so that a grammar that takes long keeps nobody waiting but its
 * own answer. One that takes too long ends the thread, and with it the masks that are in it.
 */
import type { AnswerShape } from "../chat/shape/answer-shape.ts";
import { requireShape, vocabularyOf, type MaskMaker } from "../chat/shape/grammars.ts";
import type { TokenMask } from "../chat/shape/token-mask.ts";
import { UserError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { FromGrammars, ToGrammars } from "./grammar-worker.ts";
import { Refusal } from "./problem.ts";
import type { Problem } from "./protocol.ts";
import { workerPath } from "./worker-port.ts";

/** For a grammar, and for a token under it. The first grammar waits for the vocabulary, too. */
const usualLimitsMs = { compile: 30_000, accept: 10_000 } as const;

interface GrammarLimits {
  readonly compile: number;
  readonly accept: number;
}

interface Waiting {
  readonly resolve: (answer: Int32Array | Problem) => void;
  readonly timer: Timer;
}

/** From a mask to the thread that it is in. */
interface MaskWays {
  accept(token: number): Promise<Int32Array>;
  close(): void;
}

export class GrammarHost implements MaskMaker {
  readonly #tokenizer: Tokenizer;
  readonly #limitsMs: GrammarLimits;
  #worker: Worker | undefined;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 0;

  constructor(tokenizer: Tokenizer, limitsMs: GrammarLimits = usualLimitsMs) {
    this.#tokenizer = tokenizer;
    this.#limitsMs = limitsMs;
  }

  async compile(shape: AnswerShape): Promise<TokenMask> {
    // What is wrong in itself is told at once.
    requireShape(shape);
    const worker = (this.#worker ??= this.#start());
    const id = this.#nextId++;
    const allowed = await this.#ask(worker, { type: "compile", id, shape });
    return new RemoteMask(allowed, {
      accept: (token) => this.#ask(worker, { type: "accept", id, token }),
      close: () => {
        if (worker === this.#worker) this.#send(worker, { type: "close", id });
      },
    });
  }

  close(): void {
    this.#end({ kind: "failed", message: "the engine ends" });
  }

  #start(): Worker {
    const worker = new Worker(workerPath("grammar-worker.ts"), { name: "grammars" });
    worker.onmessage = ({ data }: MessageEvent<FromGrammars>) => this.#settle(data);
    worker.onerror = ({ message }) => {
      if (worker === this.#worker) this.#end({ kind: "bug", message });
    };
    const vocabulary = vocabularyOf(this.#tokenizer);
    this.#send(worker, { type: "vocabulary", vocabulary });
    return worker;
  }

  #send(worker: Worker, message: ToGrammars): void {
    worker.postMessage(message);
  }

  async #ask(
    worker: Worker,
    message: Extract<ToGrammars, { type: "compile" | "accept" }>,
  ): Promise<Int32Array> {
    if (worker !== this.#worker) {
      throw new UserError("failed", "the grammar engine was ended by another grammar", "try again");
    }
    const { promise, resolve } = Promise.withResolvers<Int32Array | Problem>();
    const timer = setTimeout(() => this.#giveUp(message.id), this.#limitsMs[message.type]);
    this.#waiting.set(message.id, { resolve, timer });
    this.#send(worker, message);
    const answer = await promise;
    if (answer instanceof Int32Array) return answer;
    throw new Refusal(answer);
  }

  #settle({ id, answer }: FromGrammars): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(waiting?.timer);
    waiting?.resolve(answer);
  }

  /** Whoever was too slow is to blame; others had bad luck. */
  #giveUp(id: number): void {
    const message = "the grammar or schema takes too long; make it smaller or less ambiguous";
    const code = "grammar_too_slow";
    this.#settle({ id, answer: { kind: "usage", message, code } });
    this.#end({ kind: "failed", message: "the grammar engine was ended by another grammar" });
  }

  #end(problem: Problem): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    for (const id of [...this.#waiting.keys()]) this.#settle({ id, answer: problem });
  }
}

class RemoteMask implements TokenMask {
  readonly #ways: MaskWays;
  allowed: Int32Array;

  constructor(allowed: Int32Array, ways: MaskWays) {
    this.allowed = allowed;
    this.#ways = ways;
  }

  async accept(token: number): Promise<void> {
    this.allowed = await this.#ways.accept(token);
  }

  close(): void {
    this.#ways.close();
  }
}
