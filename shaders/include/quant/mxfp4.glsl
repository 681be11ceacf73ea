// MXFP4 (OCP microscaling): E2M1 codes with a shared power of two. The codebook is doubled, so the
// scale is half of the E8M0 value: 2^(e - 128). Planes: 16 bytes of nibbles; one byte e.
#include "legacy.glsl"

// Exponents 0 and 1 give denormal scales, which have to be built from bits.
float e8m0Half(uint e) { return uintBitsToFloat(e < 2 ? 0x00200000u << e : (e - 1) << 23); }

// 0 1 2 3 4 6 8 12, negative from code 8 on.
vec4 e2m1Values(uint codes) {
    vec4 values;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        const uint code = (codes >> (8 * i)) & 15;
        const float magnitude = float((0xC8643210u >> (4 * (code & 7))) & 15);
        values[i] = code < 8 ? magnitude : -magnitude;
    }
    return values;
}

void unpack(Weights w, uint block, uint unit, out vec4 values[8]) {
    const float d = e8m0Half((w.s.at[block / 4] >> (8 * (block & 3))) & 0xFF);
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        values[i] = d * e2m1Values(lowNibbles(words[i]));
        values[i + 4] = d * e2m1Values(highNibbles(words[i]));
    }
}
