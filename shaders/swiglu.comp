// The gated activation of a feed-forward block: y = silu(gate) · up (Shazeer 2020). With SWITCHED,
// each row is scaled by sigmoid(switch): the share of an expert that all rows have.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool SWITCHED = false;

layout(push_constant, std430) uniform Parameters {
    Float4s gate;      // [rows, width]
    Float4s up;        // [rows, width]
    Float4sOut y;      // [rows, width]
    Floats switch_;    // [rows], read with SWITCHED
    Step step_;
    uint width;
};

void main() {
    const uint i = gl_GlobalInvocationID.x;
    if (i >= step_.rowCount * width / 4) return;
    const vec4 g = gate.at[i];
    const float share = SWITCHED ? 1.0 / (1.0 + exp(-switch_.at[i / (width / 4)])) : 1.0;
    y.at[i] = g / (1.0 + exp(-g)) * up.at[i] * share;
}
