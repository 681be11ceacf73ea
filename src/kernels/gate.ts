/** Activation functions of gated feed-forwards, by their numbers in shaders/include/gate.glsl. */

const numbers = { silu: 1, gelu: 2 } as const;

export type GateFunction = keyof typeof numbers;

export function gateNumber(gate: GateFunction): number {
  return numbers[gate];
}
