/** Activation functions of gated feed-forwards, by their numbers in shaders/include/gate.glsl. */

const numbers = { silu: 0, gelu: 1, clamped: 2 } as const;

/** SiLU, GELU in its tanh form, or what gpt-oss has. */
export type GateFunction = keyof typeof numbers;

export function gateNumber(gate: GateFunction): number {
  return numbers[gate];
}
