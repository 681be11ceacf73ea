// Weights of one GGML type, as they lie in device memory (src/tensor/planes.ts), and how they are
// read. A unit is what one invocation reads at once: UNIT_VALUES values of a block, in quads of four
// neighbouring columns; quadColumn(unit, quad) is the first column of a quad, within the block.
//
// Each quantized type defines BLOCK_VALUES, UNIT_VALUES, quadColumn and
//   void unpackCodes(Weights w, uint block, uint unit, out uint codes[], out vec2 affines[])
// codes[quad] holds four codes as bytes (signed with SIGNED_CODES, else below 64); affines[run] is
// (scale, offset) of four quads: value = scale · code - offset.
struct Weights {
    Uint4s q;  // first plane
    Uints s;   // second plane: scales
    Uints t;   // third plane
};

// A plane of halves, two in a word.
float halfAt(Uints plane, uint index) {
    const vec2 pair = unpackHalf2x16(plane.at[index / 2]);
    return (index & 1) == 0 ? pair.x : pair.y;
}

// Four bits, one for each byte, at bit `to` of that byte.
uint spreadBits(uint bits, uint to) {
    return (((bits & 1) | ((bits & 2) << 7) | ((bits & 4) << 14) | ((bits & 8) << 21)) << to);
}

#if defined(TYPE_F32)
#include "quant/f32.glsl"
#elif defined(TYPE_F16)
#include "quant/f16.glsl"
#elif defined(TYPE_BF16)
#include "quant/bf16.glsl"
#elif defined(TYPE_Q4_0)
#include "quant/q4_0.glsl"
#elif defined(TYPE_Q4_1)
#include "quant/q4_1.glsl"
#elif defined(TYPE_Q5_0)
#include "quant/q5_0.glsl"
#elif defined(TYPE_Q5_1)
#include "quant/q5_1.glsl"
#elif defined(TYPE_Q8_0)
#include "quant/q8_0.glsl"
#elif defined(TYPE_Q2_K)
#include "quant/q2_k.glsl"
#elif defined(TYPE_Q3_K)
#include "quant/q3_k.glsl"
#elif defined(TYPE_Q4_K)
#include "quant/q4_k.glsl"
#elif defined(TYPE_Q5_K)
#include "quant/q5_k.glsl"
#elif defined(TYPE_Q6_K)
#include "quant/q6_k.glsl"
#elif defined(TYPE_IQ4_NL)
#include "quant/iq4_nl.glsl"
#elif defined(TYPE_IQ4_XS)
#include "quant/iq4_xs.glsl"
#elif defined(TYPE_MXFP4)
#include "quant/mxfp4.glsl"
#endif

const uint UNIT_QUADS = UNIT_VALUES / 4;
const uint BLOCK_UNITS = BLOCK_VALUES / UNIT_VALUES;

#ifndef PLAIN_VALUES
const uint UNIT_RUNS = UNIT_VALUES / 16;

vec4 codeValues(uint word) {
#ifdef SIGNED_CODES
    const int w = int(word);
    return vec4(bitfieldExtract(w, 0, 8), bitfieldExtract(w, 8, 8), bitfieldExtract(w, 16, 8),
                w >> 24);
#else
    return vec4(word & 0xFF, (word >> 8) & 0xFF, (word >> 16) & 0xFF, word >> 24);
#endif
}

// The values of a unit as floats; plain types define this themselves.
void unpack(Weights w, uint block, uint unit, out vec4 values[UNIT_QUADS]) {
    uint codes[UNIT_QUADS];
    vec2 affines[UNIT_RUNS];
    unpackCodes(w, block, unit, codes, affines);
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
        values[q] = affines[q / 4].x * codeValues(codes[q]) - affines[q / 4].y;
    }
}

// A unit packed as it is, which takes a quarter of the registers; quads become floats one by one.
struct WeightUnit {
    uint codes[UNIT_QUADS];
    vec2 affines[UNIT_RUNS];
};

void loadWeights(Weights w, uint block, uint unit, out WeightUnit weights) {
    unpackCodes(w, block, unit, weights.codes, weights.affines);
}

vec4 weightQuad(WeightUnit weights, uint q) {
    return weights.affines[q / 4].x * codeValues(weights.codes[q]) - weights.affines[q / 4].y;
}
#else
struct WeightUnit {
    vec4 values[UNIT_QUADS];
};

void loadWeights(Weights w, uint block, uint unit, out WeightUnit weights) {
    unpack(w, block, unit, weights.values);
}

vec4 weightQuad(WeightUnit weights, uint q) { return weights.values[q]; }
#endif
