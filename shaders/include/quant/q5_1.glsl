// Q5_1: q · d + m with the fifth bits in qh as in Q5_0. Planes: 16 bytes of nibbles; halves d and
// m, then qh.
#include "legacy.glsl"

void unpack(Weights w, uint block, uint unit, out vec4 values[8]) {
    const vec2 dm = unpackHalf2x16(w.s.at[2 * block]);
    const uint high = w.s.at[2 * block + 1];
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        const uint low5 = lowNibbles(words[i]) | spreadBits(high >> (4 * i), 4);
        const uint high5 = highNibbles(words[i]) | spreadBits(high >> (4 * i + 16), 4);
        values[i] = dm.x * unsignedBytes(low5) + dm.y;
        values[i + 4] = dm.x * unsignedBytes(high5) + dm.y;
    }
}
