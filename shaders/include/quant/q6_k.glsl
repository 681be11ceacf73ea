// Q6_K: d · scale · (q - 32) with signed 8-bit scales of 16 values. Planes: 128 bytes of low
// nibbles, 64 bytes of high pairs, 16 scales; half d.
#include "k_order.glsl"

void unpack(Weights w, uint block, uint unit, out vec4 values[16]) {
    const uint base = 13 * block;
    const uint half_ = unit / 2;
    const uvec4 low[2] =
        uvec4[](w.q.at[base + 4 * half_ + (unit & 1)], w.q.at[base + 4 * half_ + 2 + (unit & 1)]);
    const uvec4 high = w.q.at[base + 8 + unit];
    const uvec4 scales = w.q.at[base + 12];
    const float d = halfAt(w.s, block);
    [[unroll]] for (uint run = 0; run < 4; run++) {
        const uint index = runScale(unit, run);
        const float scale = d * float(bitfieldExtract(int(scales[index / 4]), int(8 * (index & 3)), 8));
        [[unroll]] for (uint i = 0; i < 4; i++) {
            const uint nibbles = (low[run & 1][i] >> (4 * (run / 2))) & 0x0F0F0F0F;
            const uint q6 = nibbles | (((high[i] >> (2 * run)) & 0x03030303) << 4);
            values[4 * run + i] = scale * (unsignedBytes(q6) - 32.0);
        }
    }
}
