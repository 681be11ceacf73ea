// Q3_K: d · (scale - 32) · q with q = two low bits - (high bit unset ? 4 : 0). Planes: 32 bytes of
// high bits, 64 bytes of low bits; 12 bytes of 6-bit scales; half d.
#include "k_order.glsl"

// Low four bits of scale i: nibble of byte i % 8; high two: a pair of bits in bytes 8 to 11.
float scale6(Uints plane, uint block, uint i) {
    const uint low = plane.at[3 * block + (i & 7) / 4] >> (8 * (i & 3) + 4 * (i / 8));
    const uint high = plane.at[3 * block + 2] >> (8 * (i & 3) + 2 * (i / 4));
    return float(int((low & 15) | ((high & 3) << 4)) - 32);
}

void unpackCodes(Weights w, uint block, uint unit, out uint codes[16], out vec2 affines[4]) {
    const uint base = 6 * block;
    const uvec4 high = w.q.at[base + (unit & 1)];
    const uvec4 words = w.q.at[base + 2 + unit];
    const float d = halfAt(w.t, block);
    [[unroll]] for (uint run = 0; run < 4; run++) {
        const float scale = d * scale6(w.s, block, runScale(unit, run));
        const uint bit = 4 * (unit / 2) + run;
        affines[run] = vec2(scale, 4 * scale);
        [[unroll]] for (uint i = 0; i < 4; i++) {
            const uint low = (words[i] >> (2 * run)) & 0x03030303;
            codes[4 * run + i] = low | (((high[i] >> bit) & 0x01010101) << 2);
        }
    }
}
