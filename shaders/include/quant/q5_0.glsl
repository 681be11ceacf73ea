// Q5_0: (q - 16) · d, the fifth bit of value j is bit j of qh. Planes: 16 bytes of nibbles; qh;
// half d.
#include "legacy.glsl"

void unpack(Weights w, uint block, uint unit, out vec4 values[8]) {
    const float d = halfAt(w.t, block);
    const uint high = w.s.at[block];
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        const uint low5 = lowNibbles(words[i]) | spreadBits(high >> (4 * i), 4);
        const uint high5 = highNibbles(words[i]) | spreadBits(high >> (4 * i + 16), 4);
        values[i] = d * (unsignedBytes(low5) - 16.0);
        values[i + 4] = d * (unsignedBytes(high5) - 16.0);
    }
}
