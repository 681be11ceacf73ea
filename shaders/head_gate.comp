// Gated attention output (Qiu et al. 2025, arXiv 2505.06708): y = x · sigmoid(gate), where the gate
// of a head stands behind its query.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Parameters {
    Float4s x;     // [rows, heads, headWidth]
    Float4s gate;  // [rows, heads, query headWidth | gate headWidth]
    Float4sOut y;  // [rows, heads, headWidth]
    Step step_;
    uint heads;
    uint headWidth;
};

void main() {
    const uint i = gl_GlobalInvocationID.x;
    const uint quads = headWidth / 4;
    if (i >= step_.rowCount * heads * quads) return;
    const vec4 g = gate.at[(2 * (i / quads) + 1) * quads + i % quads];
    y.at[i] = x.at[i] / (1.0 + exp(-g));
}
