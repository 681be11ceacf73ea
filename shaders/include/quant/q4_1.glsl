// Q4_1: q · d + m. Planes: 16 bytes of nibbles; halves d and m.
#include "legacy.glsl"

void unpackCodes(Weights w, uint block, uint unit, out uint codes[8], out vec2 affines[2]) {
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        codes[i] = words[i] & 0x0F0F0F0F;
        codes[i + 4] = (words[i] >> 4) & 0x0F0F0F0F;
    }
    const vec2 dm = unpackHalf2x16(w.s.at[block]);
    spread(vec2(dm.x, -dm.y), affines);
}
