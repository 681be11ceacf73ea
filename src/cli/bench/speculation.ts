/**
 * What guessing ahead brings and costs. The model's own text, greedily, behind a passage over and
 * over: whether it goes on with that is up to the model. And a given text, whatever the model would
 * say, of which as many guesses are right as is wanted.
 */
import type { Drafter } from "../../engine/drafter.ts";
import type { Engine } from "../../engine/engine.ts";
import { NgramDrafter } from "../../engine/ngram-drafter.ts";
import { HostSampler, seededRandom, type Sampler } from "../../engine/sampler.ts";
import { defaultSampling } from "../../engine/sampling.ts";
import { greedySampling } from "../../kernels/sample.ts";
import { Progress } from "../progress.ts";

export interface SpeculationRow {
  readonly text: "own" | "given";
  readonly guesses: "off" | "ngram" | "mtp" | "right" | "half right" | "wrong";
  readonly tokS: number;
  /** Times as fast as the same text without guesses in the same turn. */
  readonly speedup: number;
  /** Guesses that were verified, and those of them that were right. */
  readonly drafted: number;
  readonly accepted: number;
  /** The text is that without guesses. Rounding may change it unless results are deterministic. */
  readonly isSame: boolean;
}

type Kind = Pick<SpeculationRow, "text" | "guesses">;

interface Run {
  readonly tokens: readonly number[];
  readonly tokS: number;
  readonly drafted: number;
  readonly accepted: number;
}

const passageTokens = 64;
const passages = 4;
const shares: Readonly<Record<string, number>> = { right: 1, "half right": 0.5, wrong: 0 };
/** More than any logit is ahead of others. */
const certain = 1e6;

/** Tokens of a text with so many new ones. */
export function speculationTokens(steps: number): number {
  return passageTokens * passages + steps;
}

/** Medians of `repeats`, the kinds in turns, behind one repetition that warms up. */
export async function measureSpeculation(
  engine: Engine,
  { steps, repeats }: { readonly steps: number; readonly repeats: number },
): Promise<SpeculationRow[]> {
  const random = seededRandom(1);
  const { vocabularySize } = engine.model.config;
  const tokens = (count: number) =>
    Array.from({ length: count }, () => Math.floor(random() * vocabularySize));
  const passage = tokens(passageTokens);
  const prompt = Array.from({ length: passages }, () => passage).flat();
  const subject = { engine, prompt, given: tokens(steps) };
  const kinds = kindsOf(engine);
  const runs = kinds.map((): Run[] => []);
  const progress = new Progress("bench");
  try {
    for (let i = 0; i <= repeats; i++) {
      for (const [k, kind] of kinds.entries()) {
        const label = `${kind.text} text, guesses ${kind.guesses}`;
        progress.step(i, repeats, i === 0 ? `${label}, warming up` : label);
        const run = await make(subject, kind);
        if (i > 0) runs[k]?.push(run);
      }
    }
  } finally {
    progress.clear();
  }
  return kinds.map((kind, k) => {
    const own = runs[k] ?? [];
    const plain = runs[kinds.findIndex(({ text }) => text === kind.text)] ?? [];
    const isSame = own.every((run, i) => run.tokens.join() === plain[i]?.tokens.join());
    const median = (of: (run: Run, i: number) => number) =>
      own.map(of).toSorted((a, b) => a - b)[repeats >> 1] ?? Number.NaN;
    return {
      ...kind,
      tokS: median(({ tokS }) => tokS),
      speedup: median(({ tokS }, i) => tokS / (plain[i]?.tokS ?? 0)),
      drafted: median(({ drafted }) => drafted),
      accepted: median(({ accepted }) => accepted),
      isSame,
    };
  });
}

function kindsOf({ model }: Engine): readonly Kind[] {
  const own = ["off", "ngram", ...(model.predictor === undefined ? [] : ["mtp" as const])] as const;
  const given = ["off", "right", "half right", "wrong"] as const;
  return [
    ...own.map((guesses) => ({ text: "own" as const, guesses })),
    ...given.map((guesses) => ({ text: "given" as const, guesses })),
  ];
}

interface Subject {
  readonly engine: Engine;
  readonly prompt: readonly number[];
  readonly given: readonly number[];
}

/** One text on an empty cache; the first token does not count. */
async function make({ engine, prompt, given }: Subject, { text, guesses }: Kind): Promise<Run> {
  engine.forget();
  const tokens: number[] = [];
  let [started, drafted, accepted] = [0, 0, 0];
  const isOwn = text === "own";
  const drafters = { off: null, mtp: undefined, ngram: new NgramDrafter() } as const;
  const generation = engine.generate({
    prompt,
    maxTokens: given.length,
    sampler: isOwn ? new HostSampler({ ...defaultSampling, temperature: 0 }) : dictated(given),
    endTokens: new Set(),
    drafter:
      guesses in drafters
        ? drafters[guesses as keyof typeof drafters]
        : knowing(prompt.length, given, shares[guesses] ?? 0),
    onPrefill: () => {
      started = performance.now();
    },
    onDrafts: (count, right) => {
      drafted += count;
      accepted += right;
    },
  });
  for await (const token of generation) tokens.push(token);
  const seconds = (performance.now() - started) / 1000;
  return { tokens, tokS: (tokens.length - 1) / seconds, drafted, accepted };
}

/** Chooses given tokens one after the other, on the device as others do. */
function dictated(given: readonly number[]): Sampler {
  let next = 0;
  return {
    prime() {},
    sample: () => given[next++] ?? 0,
    onDevice: {
      biasCount: 1,
      next: () => ({ ...greedySampling, biases: new Map([[given[next++] ?? 0, certain]]) }),
      takeBack(count) {
        next -= count;
      },
    },
  };
}

/** Guesses of which a share is right, by chance. */
function knowing(promptLength: number, given: readonly number[], share: number): Drafter {
  const random = seededRandom(2);
  return {
    guess(tokens, count) {
      const at = tokens.length - promptLength;
      const coming = given.slice(at, at + count);
      const guess = coming.map((token) => (random() < share ? token : Math.abs(token - 1)));
      return guess.length === 0 ? undefined : { tokens: guess, evidence: 0 };
    },
  };
}

export function formatSpeculation(row: SpeculationRow): string {
  const { text, guesses, tokS, speedup, drafted, accepted, isSame } = row;
  const line = `${text} text, guesses ${guesses}: ${tokS.toFixed(1)} tok/s`;
  if (guesses === "off") return line;
  const same = isSame ? "" : ", another text by rounding";
  return `${line}, ${speedup.toFixed(2)}×, ${accepted} of ${drafted} accepted${same}`;
}
