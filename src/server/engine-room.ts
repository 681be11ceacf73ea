/**
 * The engine's side of the server: loads a model, makes the texts that are asked for, and answers
 * small questions. It runs in a Worker, or wherever a test puts it.
 */
import { renderChat } from "../chat/chat-prompt.ts";
import type { MaskMaker } from "../chat/shape/grammars.ts";
import type { TokenMask } from "../chat/shape/token-mask.ts";
import { encodeDocument, encodeSegments } from "../chat/prompt.ts";
import { UserError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import {
  AnswerStream,
  refusing,
  requireChat,
  requirePrompt,
  type ServedModel,
} from "./answer-stream.ts";
import { problemOf, Refusal } from "./problem.ts";
import type {
  Calamity,
  EmbeddingWork,
  EngineGauges,
  Finish,
  FromEngine,
  ModelFacts,
  ModelOptions,
  Question,
  Reply,
  ToEngine,
  Work,
} from "./protocol.ts";

export interface LoadedModel extends ServedModel {
  readonly facts: ModelFacts;
  gauges(): EngineGauges;
  /** Frees the device. */
  close(): void;
}

/** How a room gets its model. */
export interface Loader {
  load(options: ModelOptions, tell: (message: FromEngine) => void): Promise<LoadedModel>;
  /** What holds answers to their shapes. */
  masks(tokenizer: Tokenizer): MaskMaker;
  /** Whether an error means that the device is gone. */
  isDeviceLost(error: unknown): boolean;
}

export class EngineRoom {
  readonly #loader: Loader;
  readonly #tell: (message: FromEngine) => void;
  readonly #running = new Map<number, AbortController>();
  #model: LoadedModel | undefined;
  #masks: MaskMaker | undefined;
  #isOver = false;

  constructor(loader: Loader, tell: (message: FromEngine) => void) {
    this.#loader = loader;
    this.#tell = tell;
  }

  async receive(message: ToEngine): Promise<void> {
    if (this.#isOver) return;
    switch (message.type) {
      case "load":
        return this.#load(message.options);
      case "start":
        return this.#start(message.id, message.work);
      case "cancel":
        return this.#running.get(message.id)?.abort();
      case "ask":
        return this.#answer(message.id, message.question);
      case "suffer":
        return this.#suffer(message.calamity);
      case "close":
        return this.close();
    }
  }

  /** Ends all work and frees the device. */
  close(): void {
    if (!this.#end()) return;
    this.#tell({ type: "closed" });
  }

  async #load(options: ModelOptions): Promise<void> {
    try {
      this.#model = await this.#loader.load(options, this.#tell);
      this.#masks = this.#loader.masks(this.#model.tokenizer);
      this.#tell({ type: "ready", facts: this.#model.facts });
    } catch (error) {
      this.#tell({ type: "unloadable", problem: problemOf(error) });
    }
  }

  async #start(id: number, work: Work | EmbeddingWork): Promise<void> {
    const controller = new AbortController();
    this.#running.set(id, controller);
    let mask: TokenMask | undefined;
    try {
      const model = this.#required();
      if (work.type === "embedding") return await this.#embed(id, work, controller.signal);
      mask = work.shape && (await this.#masks?.compile(work.shape));
      const stream = new AnswerStream(model, work, mask);
      this.#tell({ type: "accepted", id, promptTokens: stream.promptTokens });
      const pieces = stream.run(controller.signal);
      for (;;) {
        const next = await pieces.next();
        if (this.#isOver) return;
        if (next.done === true) {
          this.#tell({ type: "finished", id, finish: next.value });
          return;
        }
        this.#tell({ type: "piece", id, piece: next.value });
      }
    } catch (error) {
      if (this.#loader.isDeviceLost(error)) this.lose(error);
      else if (!this.#isOver) this.#tell({ type: "refused", id, problem: problemOf(error) });
    } finally {
      mask?.close();
      this.#running.delete(id);
    }
  }

  async #embed(id: number, work: EmbeddingWork, signal: AbortSignal): Promise<void> {
    const model = this.#required();
    const prompt = documentOf(model, work);
    this.#tell({ type: "accepted", id, promptTokens: prompt.length });
    const asked = performance.now();
    let begun = asked;
    let cachedTokens = 0;
    const embedding = await model.tokens.embed({
      prompt,
      client: work.client,
      dimensions: work.dimensions,
      signal,
      onBegin(count) {
        begun = performance.now();
        cachedTokens = count;
      },
    });
    if (this.#isOver) return;
    const finish: Finish = {
      reason: embedding === undefined ? "cancelled" : "stop",
      stopString: undefined,
      promptTokens: prompt.length,
      cachedTokens,
      tokens: 0,
      reasoningTokens: 0,
      queueMs: begun - asked,
      prefillMs: performance.now() - begun,
      decodeMs: 0,
      embedding,
    };
    this.#tell({ type: "finished", id, finish });
  }

  #answer(id: number, question: Question): void {
    try {
      this.#tell({ type: "replied", id, reply: this.#reply(question) });
    } catch (error) {
      this.#tell({ type: "refused", id, problem: problemOf(error) });
    }
  }

  #reply(question: Question): Reply {
    const { tokenizer, chat, vocabularySize } = this.#required();
    switch (question.type) {
      case "gauges":
        return { type: "gauges", gauges: this.#required().gauges() };
      case "tokenize": {
        const tokens = tokenizer.encode(question.text, { special: question.special });
        return { type: "tokens", tokens, texts: tokens.map((id) => tokenizer.tokenText(id)) };
      }
      case "detokenize": {
        const foreign = question.tokens.find((id) => id >= vocabularySize);
        if (foreign === undefined) {
          return { type: "text", text: tokenizer.decode(question.tokens, { special: true }) };
        }
        throw new UserError("usage", `token ${foreign} is not in the vocabulary`);
      }
      case "template": {
        const { template } = requireChat(chat);
        const segments = refusing(question.request, (request) => renderChat(template, request));
        const text = segments.map((segment) => segment.text).join("");
        return { type: "prompt", text, tokenCount: encodeSegments(tokenizer, segments).length };
      }
    }
  }

  #suffer(calamity: Calamity): void {
    if (calamity === "device-lost") {
      this.lose(new UserError("failed", "the device was lost [VK_ERROR_DEVICE_LOST]"));
      return;
    }
    setTimeout(() => {
      throw new Error("a crash, as a test wishes");
    });
  }

  #required(): LoadedModel {
    if (this.#model !== undefined) return this.#model;
    throw new UserError("failed", "the model is not loaded", "wait until /health says so");
  }

  /** Ends everything because of an error: the device is gone, or we are at fault. */
  lose(error: unknown): void {
    if (this.#end()) this.#tell({ type: "lost", problem: problemOf(error) });
  }

  /** False if it was over before. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    for (const controller of this.#running.values()) controller.abort();
    this.#masks?.close();
    try {
      this.#model?.close();
    } catch {
      // A lost device may refuse to be freed.
    }
    return true;
  }
}

/** The tokens of a text to embed. Throws a `Refusal` for what cannot be embedded. */
function documentOf(model: LoadedModel, work: EmbeddingWork): readonly number[] {
  const { width, name } = model.facts;
  const { input, dimensions = 1, truncates } = work;
  if (dimensions > width) {
    const message = `${name} has embeddings of ${width} dimensions, not ${dimensions}`;
    throw new Refusal({ kind: "usage", message, param: "dimensions" });
  }
  const tokens = typeof input === "string" ? encodeDocument(model.tokenizer, input) : input;
  const kept = truncates ? tokens.slice(0, model.contextTokens) : tokens;
  requirePrompt(model, kept, "input");
  return kept;
}
