// Q5_K: as Q4_K, with a fifth bit from qh: bits 2·unit and 2·unit + 1 of each byte. One plane: halves
// d and dmin, 12 bytes of scales, 32 bytes qh, 128 bytes of nibbles.
#define BLOCK_VALUES 256
#define UNIT_VALUES 64
#include "k_scales.glsl"

uint quadColumn(uint unit, uint quad) { return 64 * unit + 4 * quad; }

void unpackCodes(Weights w, uint block, uint unit, out uint codes[16], out vec2 affines[4]) {
    const uint base = 11 * block;
    const uvec4 head = w.q.at[base];
    const uvec4 high[2] = uvec4[](w.q.at[base + 1], w.q.at[base + 2]);
    const uvec4 words[2] = uvec4[](w.q.at[base + 3 + 2 * unit], w.q.at[base + 4 + 2 * unit]);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        const uint word = words[i / 4][i & 3];
        const uint bits = high[i / 4][i & 3] >> (2 * unit);
        codes[i] = (word & 0x0F0F0F0F) | ((bits & 0x01010101) << 4);
        codes[i + 8] = ((word >> 4) & 0x0F0F0F0F) | ((bits & 0x02020202) << 3);
    }
    const vec2 d = unpackHalf2x16(head.x);
    const vec4 scales = kScales(head.yzw, unit) * vec4(d.xx, d.yy);
    affines[0] = scales.xz;
    affines[1] = scales.xz;
    affines[2] = scales.yw;
    affines[3] = scales.yw;
}
