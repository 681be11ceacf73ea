// The gated activation of a feed-forward block: y = act(gate) ⊙ up (Shazeer 2020).
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/gate.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint FUNCTION = 1;

layout(push_constant, std430) uniform Parameters {
    Float4s gate;  // [rows, width]
    Float4s up;    // [rows, width]
    Float4sOut y;  // [rows, width]
    Step step_;
    uint width;
};

void main() {
    const uint i = gl_GlobalInvocationID.x;
    if (i >= step_.rowCount * width / 4) return;
    const vec4 g = gate.at[i];
    y.at[i] = up.at[i] * vec4(activate(g.x, FUNCTION), activate(g.y, FUNCTION),
                              activate(g.z, FUNCTION), activate(g.w, FUNCTION));
}
