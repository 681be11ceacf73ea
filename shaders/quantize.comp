// Rows of activations to 8-bit codes with steps (see include/activations.glsl), RMS-normalized first
// with NORM: what the products of several rows read. One workgroup a row.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 64;
layout(constant_id = 1) const bool NORM = false;
layout(constant_id = 2) const bool OUTPUTS = false;  // rows are the step's output rows, packed
#include "include/reduce.glsl"
#include "include/codes.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s x;          // [rows, width]
    Float4s weight;     // [width], with NORM
    UintsOut codes;     // [rows, width] bytes
    Float2sOut steps;   // [rows, width / 16]
    Step step_;
    uint width;
    float epsilon;
};

void main() {
    const uint row = gl_WorkGroupID.x;
    if (row >= (OUTPUTS ? step_.outputCount : step_.rowCount)) return;
    float scale = 1;
    if (NORM) {
        float squares = 0;
        for (uint i = gl_LocalInvocationID.x; i < width / 4; i += WORKGROUP) {
            const vec4 v = x.at[row * (width / 4) + i];
            squares += dot(v, v);
        }
        scale = inversesqrt(workgroupSum(squares) / float(width) + epsilon);
    }
    // All invocations take every turn, because eight of them exchange a block's maximum.
    for (uint first = 0; first < width / 4; first += WORKGROUP) {
        const uint quad = first + gl_LocalInvocationID.x;
        vec4 value = vec4(0);
        if (quad < width / 4) {
            value = x.at[row * (width / 4) + quad] * scale;
            if (NORM) value *= weight.at[quad];
        }
        const QuadCodes result = quantizeQuad(value);
        if (quad < width / 4) {
            codes.at[row * (width / 4) + quad] = result.codes;
            if (quad % 4 == 0) steps.at[row * (width / 16) + quad / 4] = result.run;
        }
    }
}
