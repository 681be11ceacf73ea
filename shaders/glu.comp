// The gated activation of a feed-forward block: y = f(gate) ⊙ up (Shazeer 2020). With SWITCHED,
// each row is scaled by sigmoid(switch): the share of an expert that all rows have.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool SWITCHED = false;
layout(constant_id = 2) const uint ACTIVATION = 0;
#include "include/gate.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s gate;      // [rows, width]
    Float4s up;        // [rows, width], `upStride` apart
    Float4sOut y;      // [rows, width]
    Floats switch_;    // [rows], read with SWITCHED
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
    const float share = SWITCHED ? 1.0 / (1.0 + exp(-switch_.at[row])) : 1.0;
    y.at[i] = share * vec4(activated(g.x, u.x), activated(g.y, u.y), activated(g.z, u.z), activated(g.w, u.w));
}
