/** The embedded SPIR-V modules by name; the one file that holds them is read once. */
import { readFileSync } from "node:fs";
import { shaderPath, shaderTable, type ShaderName } from "./shaders.ts";

let file: Uint8Array | undefined;

export function spirvOf(name: ShaderName): Uint8Array {
  file ??= readFileSync(shaderPath);
  const [offset, byteSize] = shaderTable[name];
  return file.subarray(offset, offset + byteSize);
}

export const shaderNames = Object.keys(shaderTable) as ShaderName[];
