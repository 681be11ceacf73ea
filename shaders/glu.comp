// The gated activation of a feed-forward block: y = f(gate) ⊙ up (Shazeer 2020).
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ACTIVATION = 0;
#include "include/gate.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s gate;      // [rows, width]
    Float4s up;        // [rows, width], `upStride` apart
    Float4sOut y;      // [rows, width]
    Step step_;
    uint width;
    uint upStride;
};

void main() {
    const uint row = gl_WorkGroupID.y;
    const uint column = gl_GlobalInvocationID.x;
    if (row >= step_.rowCount || column >= width / 4) return;
    const uint i = row * width / 4 + column;
    const vec4 g = gate.at[i];
    const vec4 u = up.at[row * upStride / 4 + column];
    y.at[i] = vec4(activated(g.x, u.x), activated(g.y, u.y), activated(g.z, u.z), activated(g.w, u.w));
}
