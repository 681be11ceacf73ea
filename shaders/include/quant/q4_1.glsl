// Q4_1: q · d + m. Planes: 16 bytes of nibbles; halves d and m.
#include "legacy.glsl"

void unpack(Weights w, uint block, uint unit, out vec4 values[8]) {
    const vec2 dm = unpackHalf2x16(w.s.at[block]);
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        values[i] = dm.x * unsignedBytes(lowNibbles(words[i])) + dm.y;
        values[i + 4] = dm.x * unsignedBytes(highNibbles(words[i])) + dm.y;
    }
}
