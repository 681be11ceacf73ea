// Q5_0: (q - 16) · d, the fifth bit of value j is bit j of qh. Planes: 16 bytes of nibbles; qh; half d.
#include "legacy.glsl"

void unpackCodes(Weights w, uint block, uint unit, out uint codes[8], out vec2 affines[2]) {
    const uint high = w.s.at[block];
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        codes[i] = (words[i] & 0x0F0F0F0F) | spreadBits(high >> (4 * i), 4);
        codes[i + 4] = ((words[i] >> 4) & 0x0F0F0F0F) | spreadBits(high >> (4 * i + 16), 4);
    }
    const float d = halfAt(w.t, block);
    spread(vec2(d, 16 * d), affines);
}
