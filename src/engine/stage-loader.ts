/** Loads a model onto its devices: to each its part, and the memory that it works in. */
import { invariant } from "../errors.ts";
import { probeFragments } from "../kernels/fragments.ts";
import type { Model } from "../model/model.ts";
import { partOf, type ModelPart } from "../model/part.ts";
import { fileBytesOf, uploadWeights, type UploadProgress } from "../model/upload.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import type { MemoryGroup } from "../vulkan/memory.ts";
import { allocateEngineMemory } from "./memory.ts";
import type { MemoryPlan } from "./plan.ts";
import { flightCountOf, type ProgramOptions } from "./programs.ts";
import { Stage } from "./stage.ts";
import { Tuner, type TuningResult, type TuningWishes } from "./tuner.ts";

/** A device, and a description of the model whose weights lie there. */
export interface StageSite {
  readonly gpu: Gpu;
  readonly model: Model;
}

/** Results that do not depend on the number of rows do not depend on measurements either. */
export interface StageOptions extends Omit<ProgramOptions, "tunings"> {
  readonly tuning?: TuningWishes | undefined;
}

export interface LoadedStages {
  /** In the order of the layers. */
  readonly stages: readonly Stage[];
  /** All that they take. */
  readonly groups: readonly MemoryGroup[];
  /** What was measured on them. */
  readonly tuning: readonly TuningResult[];
}

/** Holds nothing if it throws. */
export async function loadStages(
  sites: readonly StageSite[],
  plan: MemoryPlan,
  { tuning: wishes, ...options }: StageOptions,
  onProgress?: (progress: UploadProgress) => void,
): Promise<LoadedStages> {
  const parts = sites.map(({ model }, i) => {
    const stage = plan.stages[i];
    invariant(stage !== undefined, `device ${i} of ${plan.stages.length}`);
    return partOf(model, stage.layers);
  });
  const tell = progressOver(parts, onProgress);
  const flightCount = flightCountOf(sites.length);
  const groups: MemoryGroup[] = [];
  const stages: Stage[] = [];
  const tuning: TuningResult[] = [];
  try {
    for (const [i, part] of parts.entries()) {
      const site = sites[i];
      invariant(site !== undefined, `device ${i} of ${sites.length}`);
      const { gpu, model } = site;
      probeFragments(gpu);
      groups.push(await uploadWeights(gpu, model.weights.file, part.weights, tell(i)));
      const memory = allocateEngineMemory(gpu, model, plan, { part, flightCount });
      groups.push(...memory.groups);
      const tuner = wishes && !options.deterministic ? new Tuner(gpu, wishes) : undefined;
      const tunings = tuner?.tunings;
      const stage = new Stage(gpu, model, plan, memory, { ...options, tunings });
      stages.push(stage);
      tuning.push(...((await tuner?.tune(stage)) ?? []));
    }
    return { stages, groups, tuning };
  } catch (error) {
    for (const stage of stages) stage.free();
    for (const group of groups) group.free();
    throw error;
  }
}

/** What is told of each part, as progress of the whole. */
function progressOver(
  parts: readonly ModelPart[],
  onProgress: (progress: UploadProgress) => void = () => {},
) {
  const sizes = parts.map(({ weights }) => fileBytesOf(weights));
  const sum = (bytes: readonly number[]) => bytes.reduce((total, size) => total + size, 0);
  const totalBytes = sum(sizes);
  return (index: number) =>
    ({ doneBytes }: UploadProgress) =>
      onProgress({ doneBytes: sum(sizes.slice(0, index)) + doneBytes, totalBytes });
}
