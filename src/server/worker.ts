/** The Worker that owns the device. */
import { describeCache } from "../engine/cache-description.ts";
import { isDeviceLost, load } from "../index.ts";
import { EngineRoom, type LoadedModel } from "./engine-room.ts";
import { EngineSource } from "./engine-source.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { GrammarHost } from "./grammar-host.ts";
import type { FromEngine, ModelOptions, ToEngine } from "./protocol.ts";

declare const self: Worker;

async function loadModel(
  options: ModelOptions,
  tell: (message: FromEngine) => void,
): Promise<LoadedModel> {
  const { path, ...wishes } = options;
  const model = await load(path, {
    ...wishes,
    onWarning: (message) => tell({ type: "warning", message }),
    onProgress: (progress) => tell({ type: "progress", ...progress }),
  });
  const { engine, config, tokenizer } = model;
  const tokens = new EngineSource(engine);
  let stepCount = 0;
  engine.onStep = () => stepCount++;
  return {
    tokenizer,
    chat: model.template === undefined ? undefined : model.chatFormat,
    tokens,
    contextTokens: model.contextTokens,
    vocabularySize: config.vocabularySize,
    facts: {
      name: config.name,
      architecture: config.architecture,
      contextTokens: model.contextTokens,
      trainedContextTokens: config.contextLength,
      vocabularySize: config.vocabularySize,
      width: config.width,
      deviceName: engine.gpus.map(({ device }) => device.capabilities.name).join(" + "),
      deviceBytes: engine.deviceBytes,
      deviceBudgetBytes: engine.plan.freeBytes,
      cacheTokens: engine.plan.cacheTokens,
      cache: describeCache(engine.plan),
      loadMs: model.loadMs,
      hasTokenizer: model.hasTokenizer,
      template: model.template?.template.source,
      templateSource: model.template?.source,
      parallel: tokens.parallel,
    },
    gauges() {
      const { freeBlockCount, idleBlockCount, totals } = engine.stats;
      return {
        freeBlocks: freeBlockCount,
        idleBlocks: idleBlockCount,
        steps: stepCount,
        rows: totals.rows,
        preemptions: totals.preemptions,
        drafted: totals.drafted,
        accepted: totals.accepted,
      };
    },
    close: () => model.close(),
  };
}

const masks = (tokenizer: Tokenizer) => new GrammarHost(tokenizer);
const room = new EngineRoom({ load: loadModel, masks, isDeviceLost }, (message) =>
  self.postMessage(message),
);
self.onmessage = ({ data }: MessageEvent<ToEngine>) => void room.receive(data);
process.on("uncaughtException", (error) => room.lose(error));
process.on("unhandledRejection", (error) => room.lose(error));
