// IQ4_NL: codebook value · d. Planes: 16 bytes of nibbles; half d.
#include "legacy.glsl"
#include "codebook4.glsl"

void unpack(Weights w, uint block, uint unit, out vec4 values[8]) {
    const float d = halfAt(w.s, block);
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        values[i] = d * codebookValues(lowNibbles(words[i]));
        values[i + 4] = d * codebookValues(highNibbles(words[i]));
    }
}
