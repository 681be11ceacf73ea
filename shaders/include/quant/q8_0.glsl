// Q8_0: q · d with signed bytes. Planes: 32 bytes; half d.
#include "legacy.glsl"
#define SIGNED_CODES

void unpackCodes(Weights w, uint block, uint unit, out uint codes[8], out vec2 affines[2]) {
    const uvec4 first = w.q.at[2 * block];
    const uvec4 second = w.q.at[2 * block + 1];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        codes[i] = first[i];
        codes[i + 4] = second[i];
    }
    spread(vec2(halfAt(w.s, block), 0), affines);
}
