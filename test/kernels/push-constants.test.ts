/**
 * Each kernel's parameters as TypeScript writes them, against the push constant block that its
 * compiled modules read; and which features those modules need.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Kernel } from "../../src/kernels/kernel.ts";
import { shaderNames, spirvOf } from "../../src/kernels/module.ts";
import { roundUp } from "../../src/math.ts";
import type { StructFields } from "../../src/vulkan/layout.ts";
import { pushConstantBytesMax } from "../../src/vulkan/pipeline.ts";
import { parseSpirv } from "../helpers/spirv.ts";

const root = join(import.meta.dir, "../..");
const kernels = await findKernels();
const modules = new Map(shaderNames.map((name) => [name, parseSpirv(spirvOf(name))]));

/** All that `defineKernel` made, by name, from every file of `src/kernels`. */
async function findKernels(): Promise<ReadonlyMap<string, Kernel<StructFields>>> {
  const files = readdirSync(join(root, "src/kernels")).filter((name) => name.endsWith(".ts"));
  const exports = await Promise.all(files.map((name) => import(join(root, "src/kernels", name))));
  const isKernel = (value: unknown): value is Kernel<StructFields> =>
    typeof value === "object" && value !== null && "parameters" in value && "name" in value;
  const found = exports.flatMap((module: object) => Object.values(module)).filter(isKernel);
  return new Map(found.map((kernel) => [kernel.name, kernel]));
}

function kernelOf(module: string): string {
  return module.split(".")[0] ?? "";
}

describe("the push constants of", () => {
  test.each(shaderNames)("%s lie where its kernel writes them", (name) => {
    const parameters = kernels.get(kernelOf(name))?.parameters;
    const block = modules.get(name)?.parameters;
    expect(block?.offsets).toEqual(Object.values(parameters?.offsets ?? {}));
    // A struct of ours ends at a multiple of its alignment, a block with its last member.
    expect(parameters?.byteSize).toBe(roundUp(block?.byteSize ?? 0, parameters?.alignment ?? 0));
    expect(parameters?.byteSize).toBeLessThanOrEqual(pushConstantBytesMax);
  });
});

describe("kernels and shaders", () => {
  const sources = readdirSync(join(root, "shaders"))
    .filter((name) => name.endsWith(".comp"))
    .map((name) => name.replace(".comp", ""));

  test("belong to each other, one to one", () => {
    expect([...kernels.keys()].toSorted()).toEqual(sources.toSorted());
  });

  test("are all compiled and embedded", () => {
    expect([...new Set(shaderNames.map(kernelOf))].toSorted()).toEqual(sources.toSorted());
  });
});

describe("a module", () => {
  /** Beside Shader and PhysicalStorageBufferAddresses, which all need. */
  const arithmetic = ["GroupNonUniform", "GroupNonUniformArithmetic"];
  const shuffle = ["GroupNonUniform", "GroupNonUniformShuffle"];
  const both = [...arithmetic, "GroupNonUniformShuffle"];
  const dotProduct = ["DotProduct", "DotProductInput4x8BitPacked"];
  const matrixUnits = ["CooperativeMatrixKHR", "Float16", "GroupNonUniform", "VulkanMemoryModel"];
  const needs: Readonly<Record<string, readonly string[]>> = {
    "attention.shared": [],
    "attention.subgroup": shuffle,
    "delta_terms.shared": [],
    "delta_terms.subgroup": arithmetic,
    embed: [],
    "expert_choice.shared": [],
    "expert_choice.subgroup": arithmetic,
    expert_direct: matrixUnits,
    "expert_down.shared.float": [],
    "expert_down.shared.int8": dotProduct,
    "expert_down.subgroup.float": shuffle,
    "expert_down.subgroup.int8": [...dotProduct, ...shuffle],
    "expert_gate_up.shared.float": [],
    "expert_gate_up.shared.int8": dotProduct,
    "expert_gate_up.subgroup.float": shuffle,
    "expert_gate_up.subgroup.int8": [...dotProduct, ...shuffle],
    expert_matmul: matrixUnits,
    expert_order: [],
    expert_sum: [],
    flash_attention: [...matrixUnits, "GroupNonUniformShuffle", "GroupNonUniformVote"],
    fragment_probe: ["CooperativeMatrixKHR", "Float16", "VulkanMemoryModel"],
    "gated_delta.shared": [],
    "gated_delta.subgroup": shuffle,
    "gated_norm.shared": [],
    "gated_norm.subgroup": arithmetic,
    glu: [],
    "halve.shared": [],
    "halve.subgroup": arithmetic,
    "linear.shared.float": [],
    "linear.shared.int8": dotProduct,
    "linear.subgroup.float": both,
    "linear.subgroup.int8": [...dotProduct, ...both],
    matmul: [],
    matmul_direct: matrixUnits,
    matmul_narrow: matrixUnits,
    matmul_wide: matrixUnits,
    "quantize.shared": [],
    "quantize.subgroup": both,
    read_bandwidth: [],
    repack: [],
    "rms_norm.shared": [],
    "rms_norm.subgroup": arithmetic,
    "rope_cache.shared": [],
    "rope_cache.subgroup": both,
    "router.shared": [],
    "router.subgroup": both,
    sample: [],
    short_conv: [],
    soft_cap: [],
    unscramble: [],
  };
  const common = ["Shader", "PhysicalStorageBufferAddresses"];
  /** Kernel, reduction and arithmetic, without the type of the weights. */
  const variantOf = (name: string) => {
    const axes = name.split(".").filter((part) => /^(shared|subgroup|float|int8)$/.test(part));
    return [kernelOf(name), ...axes].join(".");
  };

  test.each(shaderNames)("%s needs no more than its variant is chosen for", (name) => {
    const { version, capabilities, extensions } = modules.get(name) ?? {};
    const expected = [...common, ...(needs[variantOf(name)] ?? ["not in the table"])];
    expect(capabilities?.toSorted()).toEqual(expected.toSorted());
    expect(extensions).toEqual([
      ...(expected.includes("DotProduct") ? ["SPV_KHR_integer_dot_product"] : []),
      ...(expected.includes("CooperativeMatrixKHR") ? ["SPV_KHR_cooperative_matrix"] : []),
    ]);
    // What Vulkan 1.2 takes at most.
    expect(version).toBe("1.5");
  });

  test("of every line of the table exists", () => {
    expect([...new Set(shaderNames.map(variantOf))].toSorted()).toEqual(
      Object.keys(needs).toSorted(),
    );
  });
});
