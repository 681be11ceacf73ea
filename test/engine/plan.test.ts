/** Whether a model fits, on devices with as much memory as the tests like. */
import { describe, expect, test } from "bun:test";
import { describeCache } from "../../src/engine/cache-description.ts";
import {
  activationPieces,
  cacheBlockCount,
  cacheBytesPerToken,
  cachePieces,
  planMemory,
} from "../../src/engine/plan.ts";
import { UserError } from "../../src/errors.ts";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { formatBytes } from "../../src/math.ts";
import { describeModel } from "../../src/model/architectures.ts";
import type { Model } from "../../src/model/model.ts";
import type { Capabilities } from "../../src/vulkan/capabilities.ts";
import type { Device } from "../../src/vulkan/device.ts";
import { fakeDevice, memories, withLimits } from "../helpers/fake-device.ts";
import { tinyLlama, type TinyOptions } from "../helpers/tiny-llama.ts";

const mebibyte = 2 ** 20;
/** What is left to the desktop. */
const margin = 512 * mebibyte;

function tinyModel(options: TinyOptions = {}): Model {
  return describeModel(
    openGgufBytes("tiny.gguf", tinyLlama({ contextLength: 4096, ...options }).bytes),
  );
}

/** A device with this much free in its own memory, and plenty in another, which must not count. */
function deviceWith(freeBytes: number, capabilities: Capabilities = fakeDevice()): Device {
  return {
    capabilities,
    budget: () => [
      { byteSize: 1e12, deviceLocal: false, freeBytes: 1e12 },
      { byteSize: 8e9, deviceLocal: true, freeBytes },
    ],
  } as unknown as Device;
}

function refusalOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof UserError) return `${error.kind}: ${error.text}`;
    throw error;
  }
  throw new Error("nothing was refused");
}

const model = tinyModel();
const { weightBytes, activationBytes } = planMemory(deviceWith(8e9), model);
/** All but the cache. */
const fixed = weightBytes + activationBytes;
const [weightText, activationText] = [weightBytes, activationBytes].map(formatBytes);
const parts = `${weightText} of weights, ${activationText} of activations`;
const perToken = cacheBytesPerToken(model);

/** A device on which the cache may have exactly this many bytes. */
function deviceWithCache(bytes: number): Device {
  return deviceWith(margin + fixed + bytes);
}

describe("the cache", () => {
  test("needs keys and values of every layer, two bytes each", () => {
    // 2 layers, 2 heads, 16 wide.
    expect(perToken).toBe(2 * 2 * 16 * 2 * 2);
    expect(cachePieces(model, 64)).toEqual([
      { label: "keys of layer 0", byteSize: 64 * 2 * 16 * 2 },
      { label: "keys of layer 1", byteSize: 64 * 2 * 16 * 2 },
      { label: "values of layer 0", byteSize: 64 * 2 * 16 * 2 },
      { label: "values of layer 1", byteSize: 64 * 2 * 16 * 2 },
    ]);
  });

  test("takes less as codes, a different number of bytes for keys and values if so wished", () => {
    // Of 16 values, in chunks of 32: 32 bytes and a scale; 12 bytes and a scale.
    const types = { key: "q8_0", value: "tq3" } as const;
    expect(cacheBytesPerToken(model, types)).toBe(2 * 2 * (34 + 14));
    const pieces = cachePieces(model, 33, types);
    expect(pieces.map(({ byteSize }) => byteSize / (64 * 2))).toEqual([34, 34, 14, 14]);
  });

  test("comes in whole blocks of 32 positions", () => {
    expect([1, 31, 32, 33, 64].map(cacheBlockCount)).toEqual([1, 1, 1, 2, 2]);
    expect(cachePieces(model, 33)).toEqual(cachePieces(model, 64));
  });
});

describe("with enough memory", () => {
  test("the context is the model's own", () => {
    const plan = planMemory(deviceWith(8e9), model);
    expect(plan).toMatchObject({
      contextTokens: 4096,
      cacheBytes: 4096 * perToken,
      cacheBytesPerToken: perToken,
      freeBytes: 8e9 - margin,
    });
    expect(plan.totalBytes).toBe(plan.weightBytes + plan.activationBytes + plan.cacheBytes);
    expect(plan.weightBytes).toBeGreaterThanOrEqual(model.weights.byteSize);
  });

  test("a wish is granted, also one that ends within a block", () => {
    const plan = planMemory(deviceWith(8e9), model, { contextTokens: 100 });
    expect([plan.contextTokens, plan.cacheBytes]).toEqual([100, 128 * perToken]);
    expect(planMemory(deviceWith(8e9), model, { contextTokens: 4096 }).contextTokens).toBe(4096);
    expect(planMemory(deviceWith(8e9), model, { contextTokens: 1 }).contextTokens).toBe(1);
    for (const [most, expected] of [
      [100, 100],
      [9000, 4096],
    ]) {
      const plan = planMemory(deviceWith(8e9), model, { contextTokensMax: most });
      expect(plan.contextTokens).toBe(expected!);
    }
  });

  test("the plan tells what the cache keeps, and what that saves", () => {
    const tq4 = { key: "tq4", value: "tq4" } as const;
    const plan = planMemory(deviceWith(8e9), model, { kvTypes: tq4 });
    expect(plan).toMatchObject({ kvTypes: tq4, cacheBytesPerToken: 144, halfBytesPerToken: 256 });
    expect(plan.cacheBytes).toBe(4096 * 144);
    expect(describeCache(plan)).toBe("tq4 with 144 bytes a token (56 % of f16)");
    expect(describeCache(planMemory(deviceWith(8e9), model))).toBe("f16 with 256 bytes a token");
  });

  test("nothing is left to a desktop on the processor", () => {
    const cpu = fakeDevice({ kind: "cpu", ...memories.software });
    expect(planMemory(deviceWith(1e9, cpu), model).freeBytes).toBe(1e9);
  });
});

describe("with less", () => {
  test("codes let a text be longer", () => {
    const device = deviceWithCache(2048 * perToken);
    const tq4 = { key: "tq4", value: "tq4" } as const;
    expect(planMemory(device, model).contextTokens).toBe(2048);
    expect(planMemory(device, model, { kvTypes: tq4 }).contextTokens).toBe(3616);
  });

  test("the context is what fits, in whole blocks", () => {
    expect(planMemory(deviceWithCache(4095 * perToken), model).contextTokens).toBe(4064);
    expect(planMemory(deviceWithCache(1000 * perToken), model).contextTokens).toBe(992);
    expect(planMemory(deviceWithCache(256 * perToken), model).contextTokens).toBe(256);
  });

  test("a wish that just fits is granted, one block more is refused with the numbers", () => {
    const device = deviceWithCache(1024 * perToken);
    expect(planMemory(device, model, { contextTokens: 1024 }).contextTokens).toBe(1024);
    expect(refusalOf(() => planMemory(device, model, { contextTokens: 1025 }))).toBe(
      `memory: tiny needs ${formatBytes(fixed + 1025 * perToken)} (${parts}, 262 kB for 1025 ` +
        `tokens) and Fake GPU has ${formatBytes(fixed + 1024 * perToken)} free; ` +
        "shorten the context with -c 1024",
    );
  });

  test("a short context that was asked for is granted even where the default would not be", () => {
    expect(
      planMemory(deviceWithCache(64 * perToken), model, { contextTokens: 64 }).contextTokens,
    ).toBe(64);
  });
});

describe("with too little", () => {
  test("there is no context, and the advice is another model", () => {
    expect(refusalOf(() => planMemory(deviceWithCache(255 * perToken), model))).toBe(
      `memory: tiny needs ${formatBytes(fixed + 256 * perToken)} (${parts}, 65.5 kB for 256 ` +
        `tokens) and Fake GPU has ${formatBytes(fixed + 255 * perToken)} free; ` +
        "take a smaller model or quantization, or close programs that use the GPU",
    );
  });

  test.each([0, margin - 1, margin + 1000])("%d bytes", (freeBytes) => {
    expect(refusalOf(() => planMemory(deviceWith(freeBytes), model))).toStartWith(
      "memory: tiny needs",
    );
  });

  test("a model whose own context is short needs no more than that", () => {
    const short = tinyModel({ contextLength: 64 });
    expect(planMemory(deviceWithCache(64 * perToken), short).contextTokens).toBe(64);
    expect(refusalOf(() => planMemory(deviceWithCache(0), short))).toStartWith("memory: ");
  });

  test("a tensor that one allocation cannot hold is named", () => {
    const small = withLimits(fakeDevice(), { allocationBytes: 10_000 });
    expect(refusalOf(() => planMemory(deviceWith(8e9, small), model))).toBe(
      "memory: token_embd.weight needs 10.2 kB in one piece and Fake GPU allows 10.0 kB; " +
        "take a smaller quantization",
    );
  });
});

describe("a wish beyond the model", () => {
  test("is the user's mistake, whatever the memory", () => {
    expect(refusalOf(() => planMemory(deviceWith(8e9), model, { contextTokens: 4097 }))).toBe(
      "usage: a context of 4097 tokens is more than tiny was made for; choose -c up to 4096",
    );
  });
});

describe("several texts side by side", () => {
  const device = deviceWith(8e9);
  const recurrent = {
    ...model,
    states: { memory: 100 * mebibyte },
    layerMemory: model.layerMemory.map((layer, i) => ({ ...layer, states: i ? [] : ["memory"] })),
  } as unknown as Model;

  test("share a cache with a moderate context for each, where there is room", () => {
    const tokensFor = (parallel: number) => planMemory(device, model, { parallel }).cacheTokens;
    expect([1, 2, 8].map(tokensFor)).toEqual([4096, 8192, 32768]);
    const { cacheTokens } = planMemory(deviceWithCache(5000 * perToken), model, { parallel: 8 });
    expect(cacheTokens).toBe(4992);
  });

  test("share what was asked for, but never less than one text may have", () => {
    const wishes = { parallel: 8, contextTokens: 100 };
    const tokensFor = (cacheTokens: number) =>
      planMemory(device, model, { ...wishes, cacheTokens }).cacheTokens;
    expect([1, 200, 300].map(tokensFor)).toEqual([128, 224, 320]);
  });

  test("have an output each", () => {
    const wide = { ...model, config: { ...model.config, vocabularySize: 5_000_000 } };
    const plan = planMemory(deviceWith(80e9), wide as unknown as Model, { parallel: 32 });
    expect([plan.sequenceCapacity, plan.outputCapacity]).toEqual([32, 32]);
  });

  test("have state each, and some is kept of texts that are complete", () => {
    const plan = planMemory(deviceWith(80e9), recurrent, { parallel: 8 });
    expect([plan.sequenceCapacity, plan.checkpointCapacity]).toEqual([8, 22]);
    expect(plan.stateBytesPerSequence).toBe(100 * mebibyte);
    expect(plan.stateBytes).toBe(30 * 100 * mebibyte);
    expect(planMemory(deviceWith(80e9), recurrent, { checkpoints: 0 }).stateBytes).toBe(
      100 * mebibyte,
    );
    expect(planMemory(device, model).checkpointCapacity).toBeUndefined();
  });

  test("are fewer where their state would take more than a quarter of the memory", () => {
    const plan = planMemory(deviceWith(4e9), recurrent, { parallel: 32 });
    expect([plan.sequenceCapacity, plan.checkpointCapacity]).toEqual([8, 0]);
    const one = planMemory(deviceWith(900 * mebibyte), recurrent, { parallel: 32 });
    expect([one.sequenceCapacity, one.checkpointCapacity]).toEqual([1, 0]);
  });
});

describe("over several devices", () => {
  /** Each with its number, and this much free behind the margin. */
  const devicesWith = (...free: readonly number[]) =>
    free.map((bytes, index) => ({
      ...deviceWith(margin + bytes, fakeDevice({ name: `GPU ${index}` })),
      physical: { index },
    })) as unknown as Device[];
  const layersOf = ({ stages }: ReturnType<typeof planMemory>) =>
    stages.map(({ deviceName, layers }) => `${deviceName}: ${layers.first} to ${layers.end}`);
  const deep = tinyModel({ layers: 8 });

  test("the layers are split by what is free", () => {
    const even = planMemory(devicesWith(1e9, 1e9), deep);
    expect(layersOf(even)).toEqual(["GPU 0: 0 to 4", "GPU 1: 4 to 8"]);
    const uneven = planMemory(devicesWith(6e6, 4e6), deep);
    expect(layersOf(uneven)).toEqual(["GPU 0: 0 to 6", "GPU 1: 6 to 8"]);
  });

  test("the parts add up to the whole, and the logits are those of the last", () => {
    const alone = planMemory(deviceWith(8e9), deep);
    const { stages, ...plan } = planMemory(devicesWith(1e9, 1e9), deep);
    expect(plan).toMatchObject({ contextTokens: 4096, cacheBytes: alone.cacheBytes });
    const total = (of: (stage: (typeof stages)[number]) => number) =>
      stages.reduce((sum, stage) => sum + of(stage), 0);
    expect(total((stage) => stage.cacheBytes)).toBe(plan.cacheBytes);
    expect(total((stage) => stage.weightBytes)).toBe(plan.weightBytes);
    expect(total((stage) => stage.totalBytes)).toBe(plan.totalBytes);
    const [first, last] = stages;
    expect(last?.activationBytes).toBe(alone.activationBytes);
    expect(first?.activationBytes).toBeLessThan(alone.activationBytes);
  });

  test("the context is what fits the one with the least room for its part", () => {
    const [first, last] = planMemory(devicesWith(1e9, 1e9), deep).stages;
    const roomFor = (tokens: number, stage = first) =>
      (stage?.weightBytes ?? 0) + (stage?.activationBytes ?? 0) + tokens * 4 * (perToken / 2);
    const devices = devicesWith(roomFor(1000), roomFor(1020, last));
    const plan = planMemory(devices, deep);
    expect(plan.contextTokens).toBe(992);
    expect(layersOf(plan)).toEqual(["GPU 0: 0 to 4", "GPU 1: 4 to 8"]);
    const refusal = refusalOf(() => planMemory(devices, deep, { contextTokens: 4096 }));
    expect(refusal).toMatch(
      /^memory: tiny needs .+ for layers 0–3 \(.+, 2\.10 MB for 4096 tokens\) /,
    );
    expect(refusal).toMatch(/ and GPU 0 \(1 of 2\) has .+ free; shorten the context with -c 992$/);
  });

  test("one that is named twice has its memory halved", () => {
    const [device] = devicesWith(1e9);
    if (device === undefined) throw new Error("a device is expected");
    const { stages } = planMemory([device, device], deep);
    expect(stages.map(({ freeBytes }) => freeBytes)).toEqual([5e8, 5e8]);
  });

  test("no more is taken of each than is allowed", () => {
    const freeOf = (memoryBytes: readonly number[]) =>
      planMemory(devicesWith(1e9, 1e9), deep, { memoryBytes }).stages.map(
        (stage) => stage.freeBytes,
      );
    expect(freeOf([2e8])).toEqual([2e8, 2e8]);
    expect(freeOf([2e8, 7e9])).toEqual([2e8, 1e9]);
    expect(refusalOf(() => freeOf([1e8, 1e8, 1e8]))).toBe(
      "usage: the memory of 3 devices is given and there are 2; " +
        "give one size for all, or one for each",
    );
  });

  test("one with too little is named, with the advice to leave it out", () => {
    const refusal = refusalOf(() => planMemory(devicesWith(1e9, 1000), deep));
    expect(refusal).toMatch(
      /^memory: the smallest part of tiny for GPU 1 \(2 of 2\) needs .+, and /,
    );
    expect(refusal).toEndWith(
      " it has 1.00 kB free; leave it out of --devices, or close programs that use it",
    );
  });

  test("there are no more parts than layers", () => {
    expect(refusalOf(() => planMemory(devicesWith(1e9, 1e9, 1e9), model))).toBe(
      "usage: tiny can be cut into 2 parts and 3 devices are named; name fewer with --devices",
    );
  });
});

describe("activations", () => {
  test("have room for every name that the model gave, for the logits and for attention", () => {
    const pieces = new Map(
      activationPieces(model, 512, 8).map(({ label, byteSize }) => [label, byteSize]),
    );
    for (const [name, floats] of Object.entries(model.scratch)) {
      expect(pieces.get(name)).toBe(512 * floats * 4);
    }
    expect(pieces.get("logits")).toBe(8 * 40 * 4);
    // 256 workgroups of two heads, each with its sum, maximum and total; a counter a row and head.
    expect(pieces.get("attention parts")).toBe(256 * 2 * (16 + 4) * 4 + 512 * 4 * 4);
  });

  test("hold logits of at most 64 MB at once, but always of eight rows", () => {
    const capacityOf = (vocabularySize: number) => {
      const wide = { ...model, config: { ...model.config, vocabularySize } };
      // The record of a class keeps its methods on the prototype; planning needs none of them.
      return planMemory(deviceWith(8e9), wide as unknown as Model).outputCapacity;
    };
    expect([40, 32_768, 151_936, 5_000_000].map(capacityOf)).toEqual([512, 512, 110, 8]);
  });
});
