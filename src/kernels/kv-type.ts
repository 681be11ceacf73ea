/**
 * How the cache keeps keys and values: as halves, as bytes in blocks of 32 with a scale each, or as
 * codes of 4 or 3 bits of scrambled heads with one scale (TurboQuant, Zandieh et al. 2025, arXiv
 * 2504.19874). Their layout is told in shaders/include/cache_codes.glsl.
 */
import { ceilDiv } from "../math.ts";

/** By name the words of 32 values, which also tell the types apart in shaders. */
const chunkWords = { f16: 16, q8_0: 8, tq4: 4, tq3: 3 } as const;

export type KvType = keyof typeof chunkWords;

export const kvTypeNames = Object.keys(chunkWords) as readonly KvType[];

/** Keys and values need not be kept alike. */
export interface KvTypes {
  readonly key: KvType;
  readonly value: KvType;
}

export const halfTypes: KvTypes = { key: "f16", value: "f16" };

/** "tq4", or for keys and values each: "q8_0,tq4". */
export type KvTypeName = KvType | `${KvType},${KvType}`;

/** Undefined for what names no types. */
export function parseKvTypes(name: string): KvTypes | undefined {
  const [key, value = key, ...rest] = name.split(",").map((part) => part.trim());
  return isKvType(key) && isKvType(value) && rest.length === 0 ? { key, value } : undefined;
}

export function kvTypesName({ key, value }: KvTypes): KvTypeName {
  return key === value ? key : `${key},${value}`;
}

function isKvType(name: string | undefined): name is KvType {
  return name !== undefined && Object.hasOwn(chunkWords, name);
}

const chunkValues = 32;

/** Bytes that a head of this width takes for each token. */
export function kvHeadBytes(type: KvType, headWidth: number): number {
  if (type === "f16") return 2 * headWidth;
  const chunks = ceilDiv(headWidth, chunkValues);
  const scales = type === "q8_0" ? chunks : 1;
  return 4 * chunks * chunkWords[type] + 2 * scales;
}

/** Whether heads are kept as shaders/include/scramble.glsl leaves them. */
export function isScrambled(type: KvType): boolean {
  return type === "tq4" || type === "tq3";
}

/** The last specialization constants of kernels that use the cache; halves are their default. */
export function kvConstants({ key, value }: KvTypes): number[] {
  return key === "f16" && value === "f16" ? [] : [chunkWords[key], chunkWords[value]];
}
