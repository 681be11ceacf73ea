// Q5_1: q · d + m with the fifth bits in qh as in Q5_0. Planes: 16 bytes of nibbles; halves d and m,
// then qh.
#include "legacy.glsl"

void unpackCodes(Weights w, uint block, uint unit, out uint codes[8], out vec2 affines[2]) {
    const uint high = w.s.at[2 * block + 1];
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        codes[i] = (words[i] & 0x0F0F0F0F) | spreadBits(high >> (4 * i), 4);
        codes[i + 4] = ((words[i] >> 4) & 0x0F0F0F0F) | spreadBits(high >> (4 * i + 16), 4);
    }
    const vec2 dm = unpackHalf2x16(w.s.at[2 * block]);
    spread(vec2(dm.x, -dm.y), affines);
}
