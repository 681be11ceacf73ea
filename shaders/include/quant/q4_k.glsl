// Q4_K: d · scale · q - dmin · minimum, 8 sub-blocks of 32. One plane: halves d and dmin, 12 bytes of
// scales, 128 bytes of nibbles, of which a unit's 32 bytes hold two sub-blocks.
#define BLOCK_VALUES 256
#define UNIT_VALUES 64
#include "k_scales.glsl"

uint quadColumn(uint unit, uint quad) { return 64 * unit + 4 * quad; }

void unpackCodes(Weights w, uint block, uint unit, out uint codes[16], out vec2 affines[4]) {
    const uint base = 9 * block;
    const uvec4 head = w.q.at[base];
    const uvec4 words[2] = uvec4[](w.q.at[base + 1 + 2 * unit], w.q.at[base + 2 + 2 * unit]);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        codes[i] = words[i / 4][i & 3] & 0x0F0F0F0F;
        codes[i + 8] = (words[i / 4][i & 3] >> 4) & 0x0F0F0F0F;
    }
    const vec2 d = unpackHalf2x16(head.x);
    const vec4 scales = kScales(head.yzw, unit) * vec4(d.xx, d.yy);
    affines[0] = scales.xz;
    affines[1] = scales.xz;
    affines[2] = scales.yw;
    affines[3] = scales.yw;
}
