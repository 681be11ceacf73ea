// The router of a mixture of experts for one row: logits = W · norm(x) (+ bias), and what they choose.
// Workgroups share the experts; the last one to finish chooses (see include/choose.glsl). Grid: experts.
// @variant TYPE: F32 F16 BF16
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 256;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint WIDTH = 256;  // of x
layout(constant_id = 3) const uint EXPERTS = 128;
layout(constant_id = 4) const uint SCORING = 0;
layout(constant_id = 5) const bool HAS_BIAS = false;
layout(constant_id = 6) const bool NORMALIZE = true;
layout(constant_id = 7) const bool HAS_FACTORS = false;
layout(constant_id = 8) const bool HAS_OFFSETS = false;
#include "include/reduce.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Logits { float at[]; };

layout(push_constant, std430) uniform Parameters {
    Weights w;         // [EXPERTS, WIDTH]
    Float4s x;         // [WIDTH]: the residual stream
    Float4s norm;      // [WIDTH]
    Logits logits;     // [EXPERTS]
    Floats offsets;    // [EXPERTS], added to the logits with HAS_OFFSETS
    Floats bias;       // [EXPERTS], read with HAS_BIAS
    Floats factors;    // [EXPERTS], read with HAS_FACTORS: on what an expert gives
    UintsOut choices;  // see include/choices.glsl
    Counters counters; // zero between dispatches
    Step step_;
    uint used;         // not a constant: compilers would unroll the rounds
    float scale;       // of the weights
    float epsilon;
};

const uint CHOOSERS = LANES;
float chooserMax(float value) { return clusterMax(value, LANES); }
float chooserSum(float value) { return clusterSum(value, LANES); }
#include "include/choose.glsl"

const uint TURNS = (WIDTH / UNIT_VALUES + LANES - 1) / LANES;
const uint INVOCATION_QUADS = (WIDTH / 4 + WORKGROUP - 1) / WORKGROUP;
shared vec4 normed[WIDTH / 4];

void normalize() {
    vec4 values[INVOCATION_QUADS];
    float squares = 0;
    [[unroll]] for (uint i = 0; i < INVOCATION_QUADS; i++) {
        const uint quad = gl_LocalInvocationID.x + i * WORKGROUP;
        values[i] = quad < WIDTH / 4 ? x.at[quad] : vec4(0);
        squares += dot(values[i], values[i]);
    }
    const float factor = inversesqrt(workgroupSum(squares) / float(WIDTH) + epsilon);
    [[unroll]] for (uint i = 0; i < INVOCATION_QUADS; i++) {
        const uint quad = gl_LocalInvocationID.x + i * WORKGROUP;
        if (quad < WIDTH / 4) normed[quad] = values[i] * factor * norm.at[quad];
    }
    barrier();
}

#include "include/arrival.glsl"

void main() {
    if (step_.rowCount == 0) return;
    const uint lane = gl_LocalInvocationID.x % LANES;
    const uint team = gl_LocalInvocationID.x / LANES;
    const uint expert = gl_WorkGroupID.x * (WORKGROUP / LANES) + team;
    normalize();
    float sum = 0;
    // All loads of a usual width are on their way together.
    [[unroll]] for (uint i = 0; i < TURNS; i++) {
        const uint u = lane + i * LANES;
        if (u >= WIDTH / UNIT_VALUES) continue;
        const uint first = u / BLOCK_UNITS * BLOCK_VALUES;
        vec4 weights[UNIT_QUADS];
        unpack(w, min(expert, EXPERTS - 1) * (WIDTH / BLOCK_VALUES) + u / BLOCK_UNITS, u % BLOCK_UNITS, weights);
        [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
            sum += dot(weights[q], normed[(first + quadColumn(u % BLOCK_UNITS, q)) / 4]);
        }
    }
    sum = clusterSum(sum, LANES);
    if (lane == 0 && expert < EXPERTS) {
        logits.at[expert] = HAS_OFFSETS ? sum + offsets.at[expert] : sum;
    }
    if (arriveLast(0, gl_NumWorkGroups.x)) chooseExperts(0, lane, team == 0);
}
