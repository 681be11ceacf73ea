/** Rows of halves as `halve` writes them, read back as numbers. */
import { halfToFloat } from "../../tensor/half.ts";
import type { BufferSlice } from "../../vulkan/buffer.ts";
import type { Workbench } from "./workbench.ts";

export interface HalvesShape {
  readonly rows: number;
  readonly width: number;
  readonly capacity: number;
  readonly tiled?: boolean;
}

/** The values that halves stand for, in rows or in tiles of `capacity` rows. */
export function readHalves(
  bench: Workbench,
  y: BufferSlice,
  { rows, width, capacity, tiled = false }: HalvesShape,
): Float32Array {
  const floats = bench.read(y, capacity * width);
  const halves = new Uint16Array(floats.buffer);
  return Float32Array.from({ length: rows * width }, (_, i) => {
    const [row, column] = [Math.floor(i / width), i % width];
    // Those of a quad lie in the order 0 2 1 3.
    const at = [column, column + 1, column - 1, column][column % 4] ?? 0;
    const tiledAt = (Math.floor(at / 8) * capacity + row) * 8 + (at % 8);
    const step = floats[tiled ? (capacity * width) / 2 + row : row * width + width / 2];
    return halfToFloat(halves[tiled ? tiledAt : 2 * row * width + at] ?? 0) * (step ?? Number.NaN);
  });
}
