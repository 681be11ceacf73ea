/** How to say that a model does not fit: with the numbers, the device, and what can be done. */
import { UserError } from "../errors.ts";
import { formatBytes } from "../math.ts";
import type { LayerRange } from "../model/model.ts";

/** A device among those that the model is spread over. */
export interface Place {
  readonly name: string;
  readonly index: number;
  readonly count: number;
}

export interface Shortage {
  /** Of the model. */
  readonly name: string;
  readonly layers: LayerRange;
  readonly place: Place;
  readonly weightBytes: number;
  readonly activationBytes: number;
  readonly stateBytes: number;
  /** Bytes of cache. */
  readonly perToken: number;
  readonly freeBytes: number;
  /** For which there is no room. */
  readonly tokens: number;
  /** For which there is; 0 if they are too few to be of use. */
  readonly remedyTokens: number;
}

export function doesNotFit(shortage: Shortage): UserError {
  const { name, layers, place, weightBytes, activationBytes, stateBytes, freeBytes } = shortage;
  const { perToken, tokens, remedyTokens } = shortage;
  const need = weightBytes + activationBytes + stateBytes + tokens * perToken;
  const parts = [
    `${formatBytes(weightBytes)} of weights`,
    `${formatBytes(activationBytes)} of activations`,
    ...(stateBytes > 0 ? [`${formatBytes(stateBytes)} of recurrent state`] : []),
    `${formatBytes(tokens * perToken)} for ${tokens} tokens`,
  ].join(", ");
  const isAlone = place.count === 1;
  const whole = isAlone ? "" : ` for ${layersText(layers)}`;
  const smaller = "take a smaller model or quantization, or close programs that use the GPU";
  const larger = isAlone ? smaller : `name more devices with --devices, ${smaller}`;
  return new UserError(
    "memory",
    `${name} needs ${formatBytes(need)}${whole} (${parts}) and ${placeText(place)} has ` +
      `${formatBytes(freeBytes)} free`,
    remedyTokens > 0 ? `shorten the context with -c ${remedyTokens}` : larger,
  );
}

/** A device has no room even for the smallest part that it could get. */
export function namedInVain(
  name: string,
  place: Place,
  leastBytes: number,
  freeBytes: number,
): UserError {
  return new UserError(
    "memory",
    `the smallest part of ${name} for ${placeText(place)} needs ${formatBytes(leastBytes)}, ` +
      `and it has ${formatBytes(freeBytes)} free`,
    "leave it out of --devices, or close programs that use it",
  );
}

/** "Fake GPU", or "Fake GPU (2 of 3)" among several. */
function placeText({ name, index, count }: Place): string {
  return count === 1 ? name : `${name} (${index + 1} of ${count})`;
}

/** "layers 0–15", "layer 16" */
export function layersText({ first, end }: LayerRange): string {
  return end - first === 1 ? `layer ${first}` : `layers ${first}–${end - 1}`;
}
