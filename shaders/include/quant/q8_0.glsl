// Q8_0: q · d with signed bytes. Planes: 32 bytes; half d.
#include "legacy.glsl"

void unpack(Weights w, uint block, uint unit, out vec4 values[8]) {
    const float d = halfAt(w.s, block);
    const uvec4 first = w.q.at[2 * block];
    const uvec4 second = w.q.at[2 * block + 1];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        values[i] = d * signedBytes(first[i]);
        values[i + 4] = d * signedBytes(second[i]);
    }
}
