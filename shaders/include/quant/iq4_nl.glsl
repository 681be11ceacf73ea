// IQ4_NL: codebook value · d. Planes: 16 bytes of nibbles; half d.
#include "legacy.glsl"
#include "codebook4.glsl"

void unpackCodes(Weights w, uint block, uint unit, out uint codes[8], out vec2 affines[2]) {
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        codes[i] = codebookValues(words[i] & 0x0F0F0F0F);
        codes[i + 4] = codebookValues((words[i] >> 4) & 0x0F0F0F0F);
    }
    spread(vec2(halfAt(w.s, block), 0), affines);
}
