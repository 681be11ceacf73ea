/** The figures of the last accepted run, in a file with a pipeline a line. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isSame, isWorse, type Compiled, type Figures } from "./figures.ts";

export interface Baseline {
  /** Other versions of the compiler give other figures. */
  readonly driver: string;
  readonly families: Readonly<Record<string, Compiled>>;
}

export const baselinePath = join(import.meta.dir, "baseline.json");

/** A row of figures for each family, in their order; null where a family lacks the pipeline. */
interface Stored {
  readonly driver: string;
  readonly families: readonly string[];
  readonly pipelines: Readonly<Record<string, readonly (readonly number[] | null)[]>>;
}

export function readBaseline(): Baseline {
  const stored = JSON.parse(readFileSync(baselinePath, "utf8")) as Stored;
  const compiledOf = (i: number) =>
    Object.fromEntries(
      Object.entries(stored.pipelines).flatMap(([name, rows]) => {
        const row = rows[i];
        return row == null ? [] : [[name, fromRow(row)] as const];
      }),
    );
  return {
    driver: stored.driver,
    families: Object.fromEntries(stored.families.map((family, i) => [family, compiledOf(i)])),
  };
}

export function writeBaseline({ driver, families }: Baseline): void {
  const compiled = Object.values(families);
  const names = [...new Set(compiled.flatMap((one) => Object.keys(one)))].toSorted();
  const lines = names.map((name) => {
    const rows = compiled.map((one) => {
      const figures = one[name];
      return typeof figures === "object" ? toRow(figures) : null;
    });
    return `${JSON.stringify(name)}:${JSON.stringify(rows)}`;
  });
  const head = JSON.stringify({ driver, families: Object.keys(families) }).slice(0, -1);
  writeFileSync(baselinePath, `${head},"pipelines":{\n${lines.join(",\n")}\n}}\n`);
}

export interface Comparison {
  /** What has become worse. */
  readonly worse: readonly string[];
  /** Everything that differs otherwise. */
  readonly changed: readonly string[];
}

/** Of one family with its baseline. */
export function compare(before: Compiled, after: Compiled): Comparison {
  const worse: string[] = [];
  const changed: string[] = [];
  for (const [name, figures] of Object.entries(after)) {
    const known = before[name];
    // What does not compile has a fault of its own.
    if (typeof figures === "string" || typeof known === "string") continue;
    if (known === undefined) changed.push(`${name} is new`);
    else if (isWorse(known, figures))
      worse.push(`${name}: ${known.waves} → ${figures.waves} waves`);
    else if (!isSame(known, figures)) changed.push(`${name}: ${difference(known, figures)}`);
  }
  for (const name of Object.keys(before)) if (!(name in after)) changed.push(`${name} is gone`);
  return { worse, changed };
}

function difference(before: Figures, after: Figures): string {
  const names = Object.keys(before) as (keyof Figures)[];
  return names
    .filter((name) => before[name] !== after[name])
    .map((name) => `${name} ${before[name]} → ${after[name]}`)
    .join(", ");
}

function toRow(figures: Figures): readonly number[] {
  const { vgprs, spills, scratchBytes, ldsBytes, waves, codeBytes } = figures;
  return [vgprs, spills, scratchBytes, ldsBytes, waves, codeBytes];
}

function fromRow(row: readonly number[]): Figures {
  const [vgprs = 0, spills = 0, scratchBytes = 0, ldsBytes = 0, waves = 0, codeBytes = 0] = row;
  return { vgprs, spills, scratchBytes, ldsBytes, waves, codeBytes };
}
