/** The engine in a Worker of its own, so that waiting for the device stops nobody else. */
import type { EnginePort, FromEngine, ToEngine } from "./protocol.ts";

export function connectWorker(
  receive: (message: FromEngine) => void,
  onDeath: (reason: string) => void,
): EnginePort {
  const worker = new Worker(new URL("./worker.ts", import.meta.url).href, { name: "engine" });
  worker.onmessage = ({ data }: MessageEvent<FromEngine>) => receive(data);
  worker.onerror = ({ message }) => onDeath(message);
  worker.addEventListener("close", () => onDeath("its thread ended"));
  return {
    send: (message: ToEngine) => worker.postMessage(message),
    kill: () => worker.terminate(),
  };
}
