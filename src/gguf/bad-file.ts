/** The error for a file that is not as GGUF says. It always names the file, in one line. */
import { UserError } from "../errors.ts";

/** What to do about a file whose bytes contradict each other. */
const damagedRemedy = "the file is damaged or badly made: download it again, or take another";

/** What to do about a piece of a file that was cut by size. */
export const joinRemedy = "join all its parts, in order, into one .gguf file first";

/** Names from the file, which messages quote, may be 64 kB long. */
const maxMessageLength = 300;

/** A `UserError` of kind "model" about the file `name`; returned, so that callers write `throw`. */
export function badFile(name: string, message: string, remedy: string = damagedRemedy): UserError {
  const isLong = message.length > maxMessageLength;
  const shown = isLong ? `${message.slice(0, maxMessageLength)}…` : message;
  return new UserError("model", `${name}: ${shown}`, remedy);
}

/**
 * The file ends before something that it promises. `needed` and `has` are sizes of the whole file
 * in bytes; `atLeast` when more may be missing than is known yet.
 */
export function truncatedFile(
  name: string,
  needed: number,
  has: number,
  atLeast: boolean,
): UserError {
  const missing = needed - has;
  const bytes = `${atLeast ? "at least " : ""}${missing} more byte${missing === 1 ? "" : "s"}`;
  const remedy = isHandSplit(name) ? joinRemedy : "download it again";
  return badFile(name, `truncated: needs ${bytes} (it has ${has})`, remedy);
}

/** Whether a name is that of a piece: "m.gguf.part1of2", "m.gguf-split-a". */
export function isHandSplit(name: string): boolean {
  return /\.gguf[.-](part|split)[-_.]?\w*$/i.test(name);
}

/** A count with all its digits, not "1.2e+21"; rounded above 2^53, as it was read. */
export function digits(count: number): string {
  return count.toFixed(0);
}
