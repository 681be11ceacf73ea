// Q2_K: d · scale · q - dmin · minimum with 4-bit scales and minima. Planes: 16 bytes of scales, 64
// bytes of 2-bit values; halves d and dmin.
#include "k_order.glsl"

void unpack(Weights w, uint block, uint unit, out vec4 values[16]) {
    const uint base = 5 * block;
    const uvec4 scales = w.q.at[base];
    const uvec4 words = w.q.at[base + 1 + unit];
    const vec2 d = unpackHalf2x16(w.s.at[block]);
    [[unroll]] for (uint run = 0; run < 4; run++) {
        const uint index = runScale(unit, run);
        const uint packed_ = scales[index / 4] >> (8 * (index & 3));
        const float scale = d.x * float(packed_ & 15);
        const float minimum = d.y * float((packed_ >> 4) & 15);
        [[unroll]] for (uint i = 0; i < 4; i++) {
            values[4 * run + i] = scale * unsignedBytes((words[i] >> (2 * run)) & 0x03030303) - minimum;
        }
    }
}
