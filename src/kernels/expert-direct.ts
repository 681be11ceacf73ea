/** Products of experts with sorted rows, where fragments are filled in registers. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { tileCapacityOf } from "./expert-order.ts";
import {
  expertFields,
  expertParameters,
  expertResults,
  type ExpertProduct,
} from "./expert-product.ts";
import { holdsQuads } from "./fragments.ts";
import { gateNumber } from "./gate.ts";
import { defineKernel, launch, type KernelContext } from "./kernel.ts";
import { matrixUnitsOf } from "./matrix-units.ts";
import type { ShaderName } from "./shaders.ts";

export const expertDirectKernel = defineKernel("expert_direct", expertFields);

/** How the work is laid out; results differ only in rounding. */
export interface DirectExpertTuning {
  /** Rows of weights that a subgroup takes, in tiles of 16; of gates and ups as many each. */
  readonly rowTiles: number;
  /** Subgroups of a workgroup, one above the other. */
  readonly subgroups: number;
}

/** More rows of weights, or of activations, would not fit into registers. */
const defaultTuning: DirectExpertTuning = { rowTiles: 1, subgroups: 8 };

/** Choices of a tile. */
export const directTile = 16;

export function expertDirect(
  context: KernelContext,
  product: ExpertProduct,
  tuning: DirectExpertTuning = defaultTuning,
): void {
  const { w, bias, gated, tile } = product;
  const { rowTiles, subgroups } = tuning;
  const { capabilities } = context;
  invariant(holdsQuads(capabilities), `${w.name}: fragments are not known`);
  invariant(tile % 16 === 0, `${w.name}: tiles of ${tile}`);
  launch(context, expertDirectKernel, {
    shader: `expert_direct.${w.dtype}` as ShaderName,
    constants: [
      subgroups * 32,
      rowTiles,
      tile,
      gated === undefined ? 0 : 1,
      gateNumber(gated?.gate ?? "silu"),
      bias === undefined ? 0 : 1,
    ],
    subgroupSize: matrixUnitsOf(capabilities)?.subgroupSize,
    parameters: expertParameters(product),
    groups: [tileCapacityOf(product), ceilDiv(expertResults(product), subgroups * rowTiles * 16)],
    label: w.name,
  });
}
