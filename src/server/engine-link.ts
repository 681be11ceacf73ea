/** The way to one engine after another: never to two, and what an old one says is not heard. */
import type { EnginePort, FromEngine, ModelOptions, ToEngine } from "./protocol.ts";

/** Starts an engine whose messages go to `receive`; `onDeath` is told if it ends by itself. */
export type Connect = (
  receive: (message: FromEngine) => void,
  onDeath: (reason: string) => void,
) => EnginePort;

/** What an engine says while it is wanted. */
export type Heard = Exclude<FromEngine, { readonly type: "closed" }>;

export interface LinkEvents {
  readonly receive: (message: Heard) => void;
  readonly onDeath: (reason: string) => void;
}

/** An engine that does not say that it has closed is ended all the same. */
const closingMs = 10_000;

export class EngineLink {
  readonly #connect: Connect;
  readonly #events: LinkEvents;
  #port: EnginePort | undefined;
  /** Resolves when the engine has given its memory back. */
  #closing: PromiseWithResolvers<void> | undefined;

  constructor(connect: Connect, events: LinkEvents) {
    this.#connect = connect;
    this.#events = events;
  }

  /** Starts an engine and lets it load a model; what was there before is killed. */
  open(options: ModelOptions): void {
    this.kill();
    const port: EnginePort = this.#connect(
      (message) => {
        if (this.#port !== port) return;
        if (message.type === "closed") this.#closing?.resolve();
        else this.#events.receive(message);
      },
      (reason) => {
        if (this.#port !== port) return;
        if (this.#closing === undefined) this.#events.onDeath(reason);
        else this.#closing.resolve();
      },
    );
    this.#port = port;
    port.send({ type: "load", options });
  }

  /** Of no effect without an engine. */
  send(message: ToEngine): void {
    this.#port?.send(message);
  }

  /** Asks the engine to end; resolves when its memory is free. */
  async close(): Promise<void> {
    if (this.#port === undefined) return;
    if (this.#closing === undefined) {
      this.#closing = Promise.withResolvers<void>();
      this.#port.send({ type: "close" });
    }
    const { promise, resolve } = this.#closing;
    const timer = setTimeout(resolve, closingMs);
    await promise;
    clearTimeout(timer);
    this.kill();
  }

  kill(): void {
    const port = this.#port;
    this.#port = undefined;
    this.#closing?.resolve();
    this.#closing = undefined;
    port?.kill();
  }
}
