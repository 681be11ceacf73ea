// Q2_K: d · scale · q - dmin · minimum with 4-bit scales and minima. Planes: 16 bytes of scales, 64
// bytes of 2-bit values; halves d and dmin.
#include "k_order.glsl"

void unpackCodes(Weights w, uint block, uint unit, out uint codes[16], out vec2 affines[4]) {
    const uint base = 5 * block;
    const uvec4 scales = w.q.at[base];
    const uvec4 words = w.q.at[base + 1 + unit];
    const vec2 d = unpackHalf2x16(w.s.at[block]);
    [[unroll]] for (uint run = 0; run < 4; run++) {
        const uint index = runScale(unit, run);
        const uint both = scales[index / 4] >> (8 * (index & 3));
        affines[run] = d * vec2(both & 15, (both >> 4) & 15);
        [[unroll]] for (uint i = 0; i < 4; i++) {
            codes[4 * run + i] = (words[i] >> (2 * run)) & 0x03030303;
        }
    }
}
