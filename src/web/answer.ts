/** An answer while it grows: pieces of a stream go in, the fields of a message come out. */
import type { Piece } from "./api.ts";
import type { Message, Stats, ToolCall } from "./conversation.ts";

/** Over how long the speed that is shown meanwhile is averaged. */
const windowSeconds = 2;

/** What comes within less is one packet of the network, and tells nothing of speed. */
const shortestSpan = 0.1;

export class Answer {
  private model = "";
  private content = "";
  private reasoning = "";
  private readonly toolCalls: ToolCall[] = [];
  private readonly started: number;
  private first: number | undefined;
  private last: number;
  private reasoningEnd: number | undefined;
  /** Seconds at which pieces arrived: about one a token. */
  private readonly arrivals: number[] = [];
  private pieceCount = 0;
  private usage: { readonly promptTokens: number; readonly tokens: number } | undefined;
  private measuredSpeed: number | undefined;
  finishReason: string | undefined;

  /** All times are seconds of one clock. */
  constructor(now: number) {
    this.started = now;
    this.last = now;
  }

  add(piece: Piece, now: number): void {
    if (piece.kind === "model") this.model = piece.id;
    else if (piece.kind === "finish") this.finishReason = piece.reason;
    else if (piece.kind === "usage") this.usage = piece;
    else if (piece.kind === "speed") this.measuredSpeed = piece.tokensPerSecond;
    else {
      this.arrive(now);
      if (piece.kind === "reasoning") this.reasoning += piece.text;
      else {
        if (this.reasoning !== "") this.reasoningEnd ??= now;
        if (piece.kind === "text") this.content += piece.text;
        else this.addToolCall(piece);
      }
    }
  }

  private arrive(now: number): void {
    this.first ??= now;
    this.last = now;
    this.pieceCount++;
    this.arrivals.push(now);
    while ((this.arrivals[0] ?? now) < now - windowSeconds) this.arrivals.shift();
  }

  private addToolCall(piece: Extract<Piece, { kind: "tool" }>): void {
    const call = this.toolCalls[piece.index] ?? { id: "", name: "", arguments: "" };
    this.toolCalls[piece.index] = {
      id: call.id || piece.id || `call_${piece.index}`,
      name: call.name + piece.name,
      arguments: call.arguments + piece.arguments,
    };
  }

  /** Of the last two seconds. */
  get liveSpeed(): number {
    const [from] = this.arrivals;
    return from === undefined || this.last - from < shortestSpan
      ? 0
      : (this.arrivals.length - 1) / (this.last - from);
  }

  fields(): Pick<Message, "content" | "reasoning" | "reasoningSeconds" | "toolCalls" | "model"> {
    const toolCalls = this.toolCalls.filter(({ id }) => id !== "");
    const reasoningEnd = this.reasoningEnd ?? this.last;
    return {
      content: this.content,
      ...(this.model === "" ? {} : { model: this.model }),
      ...(this.reasoning === ""
        ? {}
        : {
            reasoning: this.reasoning,
            reasoningSeconds: reasoningEnd - (this.first ?? reasoningEnd),
          }),
      ...(toolCalls.length > 0 ? { toolCalls } : {}),
    };
  }

  /** Undefined if nothing came. The server's numbers where it tells them, else the page's own. */
  stats(): Stats | undefined {
    if (this.first === undefined) return undefined;
    const tokens = this.usage?.tokens ?? this.pieceCount;
    const span = this.last - this.first;
    return {
      tokens,
      tokensPerSecond: this.measuredSpeed ?? (span >= shortestSpan ? (tokens - 1) / span : 0),
      seconds: this.last - this.started,
      firstTokenSeconds: this.first - this.started,
      ...(this.usage === undefined ? {} : { promptTokens: this.usage.promptTokens }),
    };
  }
}
