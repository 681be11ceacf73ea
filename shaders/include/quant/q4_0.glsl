// Q4_0: (q - 8) · d. Planes: 16 bytes of nibbles; half d.
#include "legacy.glsl"

void unpack(Weights w, uint block, uint unit, out vec4 values[8]) {
    const float d = halfAt(w.s, block);
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        values[i] = d * (unsignedBytes(lowNibbles(words[i])) - 8.0);
        values[i + 4] = d * (unsignedBytes(highNibbles(words[i])) - 8.0);
    }
}
