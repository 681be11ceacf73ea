// Weights as operands of matrix units: halves, unit by unit as in quant.glsl. The values of a quad lie in
// the order 0 2 1 3, as bytes fall out of a word two at a time; activations (halve.comp) do the same, and
// the order of a sum does not matter.
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

const uint UNIT_CHUNKS = UNIT_VALUES / 8;  // of 16 bytes

#if defined(TYPE_F16) || defined(TYPE_BF16)
struct PackedUnit {
    uvec4 words;
};

PackedUnit noUnit() { return PackedUnit(uvec4(0)); }

void loadPacked(Weights w, uint block, uint unit, out PackedUnit packed_) { packed_.words = w.q.at[block]; }

void unpackHalves(PackedUnit packed_, out uvec4 chunks[UNIT_CHUNKS]) {
    const uvec4 words = packed_.words;
#ifdef TYPE_F16
    const uvec4 even = uvec4(words.xz & 0xFFFF, words.xz >> 16);
    const uvec4 odd = uvec4(words.yw << 16, words.yw & 0xFFFF0000u);
    chunks[0] = (even | odd).xzyw;
#else
    const vec4 low = uintBitsToFloat(words << 16);
    const vec4 high = uintBitsToFloat(words & 0xFFFF0000u);
    chunks[0] = uvec4(packHalf2x16(low.xy), packHalf2x16(high.xy), packHalf2x16(low.zw), packHalf2x16(high.zw));
#endif
}

uvec4 unpackChunk(PackedUnit packed_, uint i) {
    uvec4 chunks[UNIT_CHUNKS];
    unpackHalves(packed_, chunks);
    return chunks[0];
}
#else
#define PackedUnit WeightUnit

PackedUnit noUnit() {
    PackedUnit unit;
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) unit.codes[q] = 0;
    [[unroll]] for (uint run = 0; run < UNIT_RUNS; run++) unit.affines[run] = vec2(0);
    return unit;
}

void loadPacked(Weights w, uint block, uint unit, out PackedUnit packed_) {
    loadWeights(w, block, unit, packed_);
}

// Codes are taken from the middle of their range, where weights are about zero: the rounding of a scale
// and an offset, common to a whole run of weights, then weighs least.
#if defined(SIGNED_CODES)
const uint CODE_CENTRE = 0;
#elif defined(TYPE_Q2_K)
const uint CODE_CENTRE = 1;
#elif defined(TYPE_Q3_K)
const uint CODE_CENTRE = 4;
#elif defined(TYPE_Q4_0) || defined(TYPE_Q4_1) || defined(TYPE_Q4_K)
const uint CODE_CENTRE = 8;
#elif defined(TYPE_Q5_0) || defined(TYPE_Q5_1) || defined(TYPE_Q5_K)
const uint CODE_CENTRE = 16;
#elif defined(TYPE_Q6_K)
const uint CODE_CENTRE = 32;
#endif

// A byte in the mantissa of a half between 1024 and 2048 adds its value: no conversion is needed. A sign
// bit that is turned over adds 128.
#ifdef SIGNED_CODES
const uint CODE_BASE = 0x64806480u;
const float16_t CODE_ZERO = float16_t(1152);
#else
const uint CODE_BASE = 0x64006400u;
const float16_t CODE_ZERO = float16_t(1024 + CODE_CENTRE);
#endif

uvec2 quadHalves(uint codes, f16vec2 affine) {
    const f16vec2 even = unpackFloat2x16((codes & 0x00FF00FFu) ^ CODE_BASE) - CODE_ZERO;
    const f16vec2 odd = unpackFloat2x16(((codes >> 8) & 0x00FF00FFu) ^ CODE_BASE) - CODE_ZERO;
    const f16vec2 scale = affine.xx;
    const f16vec2 offset = affine.yy;
    return uvec2(packFloat2x16(fma(even, scale, -offset)), packFloat2x16(fma(odd, scale, -offset)));
}

void unpackHalves(PackedUnit packed_, out uvec4 chunks[UNIT_CHUNKS]) {
    f16vec2 affines[UNIT_RUNS];
    [[unroll]] for (uint run = 0; run < UNIT_RUNS; run++) {
        const vec2 affine = packed_.affines[run];
        affines[run] = f16vec2(affine.x, affine.y - affine.x * float(CODE_CENTRE));
    }
    [[unroll]] for (uint i = 0; i < UNIT_CHUNKS; i++) {
        const f16vec2 affine = affines[i / 2];
        chunks[i] = uvec4(quadHalves(packed_.codes[2 * i], affine), quadHalves(packed_.codes[2 * i + 1], affine));
    }
}

// The i-th of them alone.
uvec4 unpackChunk(PackedUnit packed_, uint i) {
    const vec2 affine = packed_.affines[i / 2];
    const f16vec2 scaled = f16vec2(affine.x, affine.y - affine.x * float(CODE_CENTRE));
    return uvec4(quadHalves(packed_.codes[2 * i], scaled), quadHalves(packed_.codes[2 * i + 1], scaled));
}
#endif
