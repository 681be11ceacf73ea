// Q6_K: d · scale · (q - 32) with signed 8-bit scales of 16 values. Planes: 128 bytes of low nibbles,
// 64 bytes of high pairs, 16 scales; half d.
#include "k_order.glsl"

void unpackCodes(Weights w, uint block, uint unit, out uint codes[16], out vec2 affines[4]) {
    const uint base = 13 * block;
    const uint first = base + 4 * (unit / 2) + (unit & 1);
    const uvec4 low[2] = uvec4[](w.q.at[first], w.q.at[first + 2]);
    const uvec4 high = w.q.at[base + 8 + unit];
    const uvec4 scales = w.q.at[base + 12];
    const float d = halfAt(w.s, block);
    [[unroll]] for (uint run = 0; run < 4; run++) {
        const uint index = runScale(unit, run);
        const int scale8 = bitfieldExtract(int(scales[index / 4]), int(8 * (index & 3)), 8);
        const float scale = d * float(scale8);
        affines[run] = vec2(scale, 32 * scale);
        [[unroll]] for (uint i = 0; i < 4; i++) {
            const uint nibbles = (low[run & 1][i] >> (4 * (run / 2))) & 0x0F0F0F0F;
            codes[4 * run + i] = nibbles | (((high[i] >> (2 * run)) & 0x03030303) << 4);
        }
    }
}
