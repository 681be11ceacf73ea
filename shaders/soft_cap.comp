// Caps logits softly, in place: y = cap · tanh(y / cap), for the step's output rows.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/soft_cap.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Parameters {
    FloatsOut y;  // [outputs, width]
    Step step_;
    uint width;
    float cap;
};

void main() {
    const uint column = gl_GlobalInvocationID.x;
    if (gl_WorkGroupID.y >= step_.outputCount || column >= width) return;
    const uint i = gl_WorkGroupID.y * width + column;
    y.at[i] = softCap(y.at[i], cap);
}
