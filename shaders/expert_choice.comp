// Which experts take a row, and with what weight (see include/choose.glsl). One workgroup a row.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint EXPERTS = 128;
layout(constant_id = 2) const uint SCORING = 0;
layout(constant_id = 3) const bool HAS_BIAS = false;
layout(constant_id = 4) const bool NORMALIZE = true;
layout(constant_id = 5) const bool HAS_FACTORS = false;
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Floats logits;     // [rows, EXPERTS]
    Floats bias;       // [EXPERTS], read with HAS_BIAS
    Floats factors;    // [EXPERTS], read with HAS_FACTORS: on what an expert gives
    UintsOut choices;  // see include/choices.glsl
    Step step_;
    uint used;         // not a constant: compilers would unroll the rounds
    float scale;       // of the weights
};

const uint CHOOSERS = WORKGROUP;
float chooserMax(float value) { return workgroupMax(value); }
float chooserSum(float value) { return workgroupSum(value); }
#include "include/choose.glsl"

void main() {
    const uint row = gl_WorkGroupID.x;
    if (row < step_.rowCount) chooseExperts(row, gl_LocalInvocationID.x, true);
}
