/** What a product does besides multiplying: bits, as in shaders/include/product_flags.glsl. */

const Flag = { HAS_BIAS: 1, ACCUMULATE: 2, OUTPUTS: 4, SWITCHED: 8 } as const;

export function productFlags(product: {
  readonly bias?: unknown;
  readonly accumulate?: boolean | undefined;
  readonly outputs?: boolean | undefined;
  readonly rowSwitch?: unknown;
}): number {
  return (
    (product.bias === undefined ? 0 : Flag.HAS_BIAS) |
    (product.accumulate === true ? Flag.ACCUMULATE : 0) |
    (product.outputs === true ? Flag.OUTPUTS : 0) |
    (product.rowSwitch === undefined ? 0 : Flag.SWITCHED)
  );
}
