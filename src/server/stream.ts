/** Responses that come bit by bit. */
import { toApiError, type ApiError } from "./api-error.ts";
import { ClientGone, type Exchange } from "./exchange.ts";

export interface StreamFormat {
  readonly contentType: string;
  /** What shows that the stream is alive; undefined if the format has nothing for it. */
  readonly ping: string | undefined;
  /** An error in the middle, as the last thing in the stream. */
  error(error: ApiError, exchange: Exchange): string;
}

const encoder = new TextEncoder();

/**
 * Sends frames as they come and pings while there are none. The exchange ends with the stream; if
 * the reader goes away, the frames are told through the exchange's signal.
 */
export function streamResponse(
  exchange: Exchange,
  frames: AsyncGenerator<string, void>,
  format: StreamFormat,
): Response {
  exchange.isStreaming = true;
  const { pingMs } = exchange.service.options;
  let pending: Promise<IteratorResult<string, void>> | undefined;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        pending ??= watched(frames.next());
        const next = await orSilence(pending, format.ping === undefined ? undefined : pingMs);
        if (next === undefined) return controller.enqueue(encoder.encode(format.ping));
        pending = undefined;
        if (next.done !== true) return controller.enqueue(encoder.encode(next.value));
        exchange.finish(200);
      } catch (error) {
        if (!(error instanceof ClientGone)) {
          controller.enqueue(encoder.encode(format.error(toApiError(error), exchange)));
        }
        exchange.finish(200, error);
      }
      controller.close();
    },
    cancel() {
      exchange.abandon();
      exchange.finish(200, new ClientGone());
    },
  });
  return new Response(body, {
    headers: {
      "content-type": format.contentType,
      "cache-control": "no-cache",
      // Proxies that collect a response before they pass it on.
      "x-accel-buffering": "no",
    },
  });
}

/** The value, or undefined if it is not there after a while. */
async function orSilence<T>(value: Promise<T>, ms: number | undefined): Promise<T | undefined> {
  if (ms === undefined) return value;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), ms);
  try {
    return await Promise.race([value, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** A server-sent event: a JSON object, and its name where the API has names. */
export function event(data: unknown, name?: string): string {
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/** Of several streams whichever has something, with its number; all of them to their ends. */
export async function* merged<T, R>(
  streams: readonly AsyncGenerator<T, R>[],
): AsyncGenerator<{ index: number; next: IteratorResult<T, R> }, void> {
  const waiting = new Map(streams.map((stream, index) => [index, advance(stream, index)]));
  while (waiting.size > 0) {
    const { index, next } = await Promise.race(waiting.values());
    const stream = streams[index];
    if (next.done === true || stream === undefined) waiting.delete(index);
    else waiting.set(index, advance(stream, index));
    yield { index, next };
  }
}

function advance<T, R>(stream: AsyncGenerator<T, R>, index: number) {
  return watched(stream.next().then((next) => ({ index, next })));
}

/** A promise that may fail while nobody waits for it: whoever does so later learns of it. */
function watched<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
