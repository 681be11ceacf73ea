// The gated activation of a feed-forward block: y = f(gate) · up (Shazeer 2020). With SWITCHED,
// each row is scaled by sigmoid(switch): the share of an expert that all rows have.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool SWITCHED = false;
// f: SiLU or, with GELU, its relative in the tanh form (Hendrycks & Gimpel 2016).
layout(constant_id = 2) const bool GELU = false;

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
    // 1 + tanh(z / 2) = 2 / (1 + exp(-z)), which needs no tanh and ends in no ∞ / ∞.
    const vec4 z = GELU ? 1.5957691216057308 * g * (1.0 + 0.044715 * g * g) : g;
    const float share = SWITCHED ? 1.0 / (1.0 + exp(-switch_.at[row])) : 1.0;
    y.at[i] = g / (1.0 + exp(-z)) * up.at[row * upStride / 4 + column] * share;
}
