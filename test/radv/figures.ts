/** What is kept of a compiled pipeline, and what may not be: spills, scratch, idle registers. */

export interface Figures {
  readonly vgprs: number;
  readonly spills: number;
  readonly scratchBytes: number;
  readonly ldsBytes: number;
  /** Subgroups a SIMD. */
  readonly waves: number;
  readonly codeBytes: number;
}

/** Figures by pipeline, or the error of one that does not compile. */
export type Compiled = Readonly<Record<string, Figures | string>>;

/** Matrix–vector kernels hide the latency of memory behind each other. */
const matvecWavesMin = 8;
const matvecKernels = ["linear", "expert_gate_up", "expert_down"];

/** Figures by the names of RADV's statistics. */
export function figuresOf(values: Readonly<Record<string, number>>): Figures {
  const value = (name: string) => {
    const found = values[name];
    if (found === undefined) throw new Error(`RADV does not tell its "${name}"`);
    return found;
  };
  return {
    vgprs: value("VGPRs"),
    spills: value("Spilled VGPRs") + value("Spilled SGPRs"),
    scratchBytes: value("Scratch size"),
    ldsBytes: value("LDS size"),
    waves: value("Subgroups per SIMD"),
    codeBytes: value("Code size"),
  };
}

/** What is wrong with a pipeline, whatever it was before. */
export function faultsOf(pipeline: string, figures: Figures | string): string[] {
  if (typeof figures === "string") return [figures];
  const { spills, scratchBytes, waves } = figures;
  const isMatvec = matvecKernels.includes(pipeline.split(".")[0] ?? "");
  return [
    ...(spills > 0 ? [`${spills} registers are spilled`] : []),
    ...(scratchBytes > 0 ? [`${scratchBytes} bytes of scratch`] : []),
    ...(isMatvec && waves < matvecWavesMin ? [`${waves} waves, fewer than ${matvecWavesMin}`] : []),
  ];
}

/** Whether fewer subgroups share a SIMD than before. */
export function isWorse(before: Figures, after: Figures): boolean {
  return after.waves < before.waves;
}

export function isSame(a: Figures, b: Figures): boolean {
  return Object.entries(a).every(([name, value]) => b[name as keyof Figures] === value);
}
