/**
 * What guessing ahead brings and costs: one text, made without guesses, with those that are looked
 * up, and with some that are right, or not, as often as is wanted. The prompt is a passage over and
 * over; whether the model goes on with it is up to the model.
 */
import type { Drafter } from "../../engine/drafter.ts";
import type { Engine } from "../../engine/engine.ts";
import { NgramDrafter } from "../../engine/ngram-drafter.ts";
import { HostSampler, seededRandom } from "../../engine/sampler.ts";
import { defaultSampling } from "../../engine/sampling.ts";
import { Progress } from "../progress.ts";

export interface SpeculationRow {
  readonly guesses: Guesses;
  readonly tokS: number;
  /** As fast as without guesses, times this. */
  readonly speedup: number;
  /** Guesses that were verified, and those of them that were right. */
  readonly drafted: number;
  readonly accepted: number;
  /** The text is that without guesses. Rounding may change it unless results are deterministic. */
  readonly isSame: boolean;
}

const passageTokens = 64;
const passages = 4;

/** Tokens of a text with so many new ones. */
export function speculationTokens(steps: number): number {
  return passageTokens * passages + steps;
}

/** Of the guesses of each kind, how many are right; others are looked up or made by layers. */
const shares = { "all right": 1, "half right": 0.5, "all wrong": 0 } as const;
type Guesses = "off" | "ngram" | "mtp" | keyof typeof shares;

const knownShares = Object.keys(shares) as (keyof typeof shares)[];

interface Run {
  readonly tokens: readonly number[];
  readonly tokS: number;
  readonly drafted: number;
  readonly accepted: number;
}

/** Medians of `repeats`, the kinds in turns, behind one repetition that warms up. */
export async function measureSpeculation(
  engine: Engine,
  { steps, repeats }: { readonly steps: number; readonly repeats: number },
): Promise<SpeculationRow[]> {
  const progress = new Progress("bench");
  const random = seededRandom(1);
  const { vocabularySize } = engine.model.config;
  const passage = Array.from({ length: passageTokens }, () =>
    Math.floor(random() * vocabularySize),
  );
  const prompt = Array.from({ length: passages }, () => passage).flat();
  const own: readonly Guesses[] = engine.model.predictor === undefined ? [] : ["mtp"];
  const kinds: readonly Guesses[] = ["off", "ngram", ...own, ...knownShares];
  const runs = new Map<Guesses, Run[]>(kinds.map((kind) => [kind, []]));
  try {
    for (let i = 0; i <= repeats; i++) {
      let truth: readonly number[] = [];
      for (const kind of kinds) {
        progress.step(i, repeats, `guesses: ${kind}${i === 0 ? ", warming up" : ""}`);
        const drafter = drafterOf(kind, prompt.length, truth, vocabularySize);
        const run = await make(engine, prompt, steps, drafter);
        if (kind === "off") truth = run.tokens;
        if (i > 0) runs.get(kind)?.push(run);
      }
    }
  } finally {
    progress.clear();
  }
  const [plain] = [...(runs.get("off") ?? [])].toSorted(bySpeed).slice(repeats / 2);
  return kinds.map((guesses) => {
    const [run] = (runs.get(guesses) ?? []).toSorted(bySpeed).slice(repeats / 2);
    const { tokS = 0, drafted = 0, accepted = 0 } = run ?? {};
    const isSame = run?.tokens.join() === plain?.tokens.join();
    return { guesses, tokS, speedup: tokS / (plain?.tokS ?? 0), drafted, accepted, isSame };
  });
}

function bySpeed(a: Run, b: Run): number {
  return a.tokS - b.tokS;
}

function drafterOf(
  kind: Guesses,
  promptLength: number,
  truth: readonly number[],
  vocabularySize: number,
): Drafter | null | undefined {
  if (kind === "off") return null;
  if (kind === "ngram") return new NgramDrafter();
  if (kind === "mtp") return undefined;
  const random = seededRandom(2);
  return {
    guess(tokens, count) {
      const at = tokens.length - promptLength;
      const coming = truth.slice(at, at + count);
      const guess = coming.map((token) =>
        random() < shares[kind] ? token : (token + 1) % vocabularySize,
      );
      return guess.length === 0 ? undefined : { tokens: guess, evidence: 0 };
    },
  };
}

/** One text, greedily, on an empty cache; the first token does not count. */
async function make(
  engine: Engine,
  prompt: readonly number[],
  steps: number,
  drafter: Drafter | null | undefined,
): Promise<Run> {
  engine.forget();
  const tokens: number[] = [];
  let [started, drafted, accepted] = [0, 0, 0];
  const text = engine.generate({
    prompt,
    maxTokens: steps,
    sampler: new HostSampler({ ...defaultSampling, temperature: 0 }),
    endTokens: new Set(),
    drafter,
    onPrefill: () => {
      started = performance.now();
    },
    onDrafts: (count, right) => {
      drafted += count;
      accepted += right;
    },
  });
  for await (const token of text) tokens.push(token);
  const seconds = (performance.now() - started) / 1000;
  return { tokens, tokS: (tokens.length - 1) / seconds, drafted, accepted };
}

export function formatSpeculation(row: SpeculationRow): string {
  const { guesses, tokS, speedup, drafted, accepted, isSame } = row;
  const text = `guesses ${guesses}: ${tokS.toFixed(1)} tok/s`;
  if (guesses === "off") return text;
  const same = isSame ? "the same text" : "another text, by rounding";
  return `${text}, ${speedup.toFixed(2)}×, ${accepted} of ${drafted} accepted, ${same}`;
}
