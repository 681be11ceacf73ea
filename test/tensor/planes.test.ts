/** How blocks are laid out on the device: every byte of a block goes to one place alone. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import { blockFormats, byteSize, dtypes } from "../../src/tensor/dtype.ts";
import { planeFields, planeLayout } from "../../src/tensor/planes.ts";
import { isComputable, planesIn } from "../../src/tensor/tensor.ts";
import type { DeviceBuffer } from "../../src/vulkan/buffer.ts";

describe.each(dtypes)("%s", (dtype) => {
  const { blockBytes, blockValues } = blockFormats[dtype];
  const fields = planeFields(dtype);

  test("fields cover each byte of a block exactly once", () => {
    const uses = new Uint8Array(blockBytes);
    for (const field of fields) {
      for (let i = 0; i < field.byteSize; i++)
        uses[field.offset + i] = (uses[field.offset + i] ?? 9) + 1;
    }
    expect([...uses]).toEqual(Array(blockBytes).fill(1));
    expect(fields.length).toBeLessThanOrEqual(3);
  });

  test("planes are aligned, apart, and hold whole blocks", () => {
    for (const blockCount of [1, 2, 7, 16, 1001]) {
      const layout = planeLayout(dtype, blockCount * blockValues);
      let end = 0;
      layout.planes.forEach(({ offset, byteSize: planeBytes }, i) => {
        expect(offset % 16).toBe(0);
        expect(offset).toBeGreaterThanOrEqual(end);
        expect(offset - end).toBeLessThan(16);
        expect(planeBytes).toBe(blockCount * (fields[i]?.byteSize ?? 0));
        end = offset + planeBytes;
      });
      expect(layout.byteSize).toBe(Math.ceil(end / 16) * 16);
    }
  });

  test("needs no more memory than the file, but for the alignment of each plane", () => {
    const layout = planeLayout(dtype, 4096 * blockValues);
    expect(layout.byteSize).toBe(byteSize(dtype, 4096 * blockValues));
  });

  test("rows are computed if they are whole blocks of 16 bytes or more", () => {
    expect(isComputable(dtype, Math.max(blockValues, 8))).toBe(true);
    expect(isComputable(dtype, 3 * Math.max(blockValues, 8))).toBe(true);
    expect(isComputable(dtype, Math.max(blockValues, 8) / 2)).toBe(false);
    expect(isComputable(dtype, Math.max(blockValues, 8) + 1)).toBe(false);
  });
});

describe("planes in a slice", () => {
  const buffer = {} as DeviceBuffer;

  test("count from where the slice does", () => {
    const slice = { buffer, offset: 256, byteSize: 1024 };
    expect(planesIn(slice, "Q8_0", 96)).toEqual([
      { buffer, offset: 256, byteSize: 96 },
      { buffer, offset: 352, byteSize: 6 },
    ]);
  });

  test("do not fit a smaller one", () => {
    const slice = { buffer, offset: 0, byteSize: 111 };
    expect(() => planesIn(slice, "Q8_0", 96)).toThrow(
      new InvariantError("Q8_0 planes need 112 bytes"),
    );
  });
});
