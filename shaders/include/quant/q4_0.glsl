// Q4_0: (q - 8) · d. Planes: 16 bytes of nibbles; half d.
#include "legacy.glsl"

void unpackCodes(Weights w, uint block, uint unit, out uint codes[8], out vec2 affines[2]) {
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        codes[i] = words[i] & 0x0F0F0F0F;
        codes[i + 4] = (words[i] >> 4) & 0x0F0F0F0F;
    }
    const float d = halfAt(w.s, block);
    spread(vec2(d, 8 * d), affines);
}
