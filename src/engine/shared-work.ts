/** Texts that begin alike and come at the same time: one computes what the other will find. */
import { blockTokens } from "../kernels/step.ts";
import type { Residence } from "./residence.ts";
import type { Share } from "./step-plan.ts";
import type { TokenStream } from "./token-stream.ts";

/** Whether a step computes for another text what this one needs next, and shares it. */
export function isBeingComputed(
  shares: Iterable<Share>,
  { tokens }: TokenStream,
  { path, borrows }: Residence,
): boolean {
  if (!borrows) return false;
  const from = path.length * blockTokens;
  return [...shares].some(({ stream, residence, position }) => {
    if (residence.path.length !== path.length || residence.path.at(-1) !== path.at(-1)) {
      return false;
    }
    const checkpoint = stream.checkpointAfter(position);
    const end = Number.isFinite(checkpoint) ? checkpoint : from + blockTokens;
    if (end >= tokens.length || end > stream.tokens.length) return false;
    for (let i = from; i < end; i++) if (tokens[i] !== stream.tokens[i]) return false;
    return true;
  });
}
