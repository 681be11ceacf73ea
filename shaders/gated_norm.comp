// RMS normalization of each head, gated: y = x / sqrt(mean(x²) + ε) · weight · silu(gate), with one
// weight for all heads. One workgroup a head and row.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s x;       // [rows, heads, width]
    Float4s weight;  // [width]
    Float4s gate;    // [rows, heads, width]
    Float4sOut y;    // [rows, heads, width]
    Step step_;
    uint heads;
    uint width;
    float epsilon;
};

void main() {
    const uint row = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint base = (row * heads + gl_WorkGroupID.x) * (width / 4);
    float squares = 0;
    for (uint i = gl_LocalInvocationID.x; i < width / 4; i += WORKGROUP) {
        const vec4 v = x.at[base + i];
        squares += dot(v, v);
    }
    const float scale = inversesqrt(workgroupSum(squares) / float(width) + epsilon);
    for (uint i = gl_LocalInvocationID.x; i < width / 4; i += WORKGROUP) {
        const vec4 g = gate.at[base + i];
        y.at[base + i] = x.at[base + i] * scale * weight.at[i] * (g / (1.0 + exp(-g)));
    }
}
