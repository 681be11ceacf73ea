/** A sequence that its owner feeds by hand. Its first tokens take it to a place on the device. */
import type { Residence } from "./residence.ts";

export class Sequence {
  residence: Residence | undefined;

  /** Tokens whose keys and values are in the cache; the position of the next one. */
  get length(): number {
    return this.residence?.length ?? 0;
  }
}
