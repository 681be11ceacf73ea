// RMS normalization: y = x / sqrt(mean(x²) + ε) · weight, row by row (Zhang & Sennrich 2019). One
// workgroup a row. With GATHER, row i of the result comes from row outputRow(i): only what the head
// needs.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 64;
layout(constant_id = 1) const bool GATHER = false;
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s x;       // [rows, width]
    Float4s weight;  // [width]
    Float4sOut y;    // [rows, width]
    Step step_;
    uint width;
    float epsilon;
};

void main() {
    const uint row = gl_WorkGroupID.x;
    if (row >= (GATHER ? step_.outputCount : step_.rowCount)) return;
    const uint source = (GATHER ? stepOutputRow(step_, row) : row) * width / 4;
    const uint target = row * width / 4;
    float squares = 0;
    for (uint i = gl_LocalInvocationID.x; i < width / 4; i += WORKGROUP) {
        const vec4 v = x.at[source + i];
        squares += dot(v, v);
    }
    const float scale = inversesqrt(workgroupSum(squares) / float(width) + epsilon);
    for (uint i = gl_LocalInvocationID.x; i < width / 4; i += WORKGROUP) {
        y.at[target + i] = x.at[source + i] * scale * weight.at[i];
    }
}
