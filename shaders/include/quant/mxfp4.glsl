// MXFP4 (OCP microscaling): E2M1 codes with a shared power of two. The codebook is doubled, so the
// scale is half of the E8M0 value: 2^(e - 128). Planes: 16 bytes of nibbles; one byte e.
#include "legacy.glsl"
#define SIGNED_CODES

// Exponents 0 and 1 give denormal scales, which have to be built from bits.
float e8m0Half(uint e) { return uintBitsToFloat(e < 2 ? 0x00200000u << e : (e - 1) << 23); }

// 0 1 2 3 4 6 8 12, negative from index 8 on.
uint e2m1Values(uint indices) {
    uint values = 0;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        const uint index = (indices >> (8 * i)) & 15;
        const int magnitude = int((0xC8643210u >> (4 * (index & 7))) & 15);
        values |= uint((index < 8 ? magnitude : -magnitude) & 0xFF) << (8 * i);
    }
    return values;
}

void unpackCodes(Weights w, uint block, uint unit, out uint codes[8], out vec2 affines[2]) {
    const uvec4 words = w.q.at[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        codes[i] = e2m1Values(words[i] & 0x0F0F0F0F);
        codes[i + 4] = e2m1Values((words[i] >> 4) & 0x0F0F0F0F);
    }
    const uint e = (w.s.at[block / 4] >> (8 * (block & 3))) & 0xFF;
    spread(vec2(e8m0Half(e), 0), affines);
}
