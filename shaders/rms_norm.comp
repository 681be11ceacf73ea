// RMS normalization: y = factor · x / sqrt(mean(x²) + ε) · weight (Zhang & Sennrich 2019). A row
// holds one or several groups of `width` values, each normalized alone; one workgroup a group. With
// GATHER, row i of the result comes from row outputRow(i): only what the head needs. With
// ACCUMULATE, y = factor · (y + …): a residual stream whose branches end in a norm.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 64;
layout(constant_id = 1) const bool GATHER = false;
layout(constant_id = 2) const bool ACCUMULATE = false;
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s x;       // [rows, groups, width]
    Float4s weight;  // [width]
    Float4sOut y;    // [rows, stride], of which groups · width are written
    Step step_;
    uint width;
    uint stride;     // of y
    float epsilon;
    float factor;
};

void main() {
    const uint row = gl_WorkGroupID.x;
    if (row >= (GATHER ? step_.outputCount : step_.rowCount)) return;
    const uint groups = gl_NumWorkGroups.y;
    const uint sourceRow = GATHER ? stepOutputRow(step_, row) : row;
    const uint source = (sourceRow * groups + gl_WorkGroupID.y) * width / 4;
    const uint target = (row * stride + gl_WorkGroupID.y * width) / 4;
    float squares = 0;
    for (uint i = gl_LocalInvocationID.x; i < width / 4; i += WORKGROUP) {
        const vec4 v = x.at[source + i];
        squares += dot(v, v);
    }
    const float scale = inversesqrt(workgroupSum(squares) / float(width) + epsilon);
    for (uint i = gl_LocalInvocationID.x; i < width / 4; i += WORKGROUP) {
        vec4 v = x.at[source + i] * scale * weight.at[i];
        if (ACCUMULATE) v += y.at[target + i];
        y.at[target + i] = factor * v;
    }
}
