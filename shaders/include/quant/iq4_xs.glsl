// IQ4_XS: d · (scale - 32) · codebook value, 8 groups of 32 with 6-bit scales. Planes: 128 bytes of
// nibbles; half d, 16 bits of high scale pairs, 4 bytes of low scale nibbles.
#define BLOCK_VALUES 256
#define UNIT_VALUES 32
#include "codebook4.glsl"

uint quadColumn(uint unit, uint quad) { return 32 * unit + 4 * quad; }

void unpackCodes(Weights w, uint block, uint unit, out uint codes[8], out vec2 affines[2]) {
    const uvec4 words = w.q.at[8 * block + unit];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        codes[i] = codebookValues(words[i] & 0x0F0F0F0F);
        codes[i + 4] = codebookValues((words[i] >> 4) & 0x0F0F0F0F);
    }
    const uint head = w.s.at[2 * block];
    const uint low = (w.s.at[2 * block + 1] >> (4 * unit)) & 15;
    const uint high = (head >> (16 + 2 * unit)) & 3;
    const float scale = unpackHalf2x16(head).x * float(int(low | (high << 4)) - 32);
    affines[0] = vec2(scale, 0);
    affines[1] = affines[0];
}
