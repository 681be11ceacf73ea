/** Some of the oracle's logits for each tiny model, so that tests run where the oracle is not. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { deviationOf } from "./logits.ts";

/** Positions and tokens whose logits are kept. */
export const goldenPositions = [0, 1, 15, 31, 47, 63] as const;
export const goldenTokens = [0, 45, 91, 137, 182, 228, 274, 319] as const;

export interface Golden {
  /** Of the file. */
  readonly sha256: string;
  /** Standard deviation of the logits at each position. */
  readonly deviations: readonly number[];
  /** By position, then by token. */
  readonly logits: readonly (readonly number[])[];
}

export const goldensPath = join(import.meta.dir, "goldens.json");

export function readGoldens(): Readonly<Record<string, Golden>> {
  return existsSync(goldensPath) ? JSON.parse(readFileSync(goldensPath, "utf8")) : {};
}

export function digestOf(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** What is kept of logits behind each token. */
export function sampleOf(logits: readonly (readonly number[])[]): Omit<Golden, "sha256"> {
  const kept = goldenPositions.map((position) => logits[position] ?? []);
  const round = (value: number) => Number(value.toPrecision(7));
  return {
    deviations: kept.map((row) => round(deviationOf(row))),
    logits: kept.map((row) => goldenTokens.map((token) => round(row[token] ?? Number.NaN))),
  };
}
