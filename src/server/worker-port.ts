/** The engine in a Worker of its own, so that waiting for the device stops nobody else. */
import type { EnginePort, FromEngine, ToEngine } from "./protocol.ts";

/** The executable has its files under the names that build.ts gives them, from src/ on. */
const isExecutable = process.env["ZINC_BUILD"] !== undefined;
export function workerPath(file: string): string {
  return isExecutable ? `./server/${file}` : new URL(`./${file}`, import.meta.url).href;
}

export function connectWorker(
  receive: (message: FromEngine) => void,
  onDeath: (reason: string) => void,
): EnginePort {
  const worker = new Worker(workerPath("worker.ts"), { name: "engine" });
  worker.onmessage = ({ data }: MessageEvent<FromEngine>) => receive(data);
  worker.onerror = ({ message }) => onDeath(message);
  worker.addEventListener("close", () => onDeath("its thread ended"));
  return {
    send: (message: ToEngine) => worker.postMessage(message),
    kill: () => worker.terminate(),
  };
}
