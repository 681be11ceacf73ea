/** The embedded SPIR-V modules by name; the one file that holds them is read once. */
import { readFileSync } from "node:fs";
import { shaderPath, shaderTable, type ShaderName } from "./shaders.ts";

let file: Uint8Array | undefined;

export function spirvOf(name: ShaderName): Uint8Array {
  const [offset, byteSize] = shaderTable[name];
  return modules().subarray(offset, offset + byteSize);
}

/** Tells this build's kernels from those of others. */
export function modulesHash(): string {
  return Bun.hash.xxHash64(modules()).toString(16);
}

function modules(): Uint8Array {
  file ??= readFileSync(shaderPath);
  return file;
}

export const shaderNames = Object.keys(shaderTable) as ShaderName[];
