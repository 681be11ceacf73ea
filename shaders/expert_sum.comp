// What the chosen experts of each row gave, summed by their weights, slot by slot: y[row] = Σ
// weight[row, slot] · x[row, slot], added to what is there with ACCUMULATE. Grid: quads × rows.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/choices.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool ACCUMULATE = true;

layout(push_constant, std430) uniform Parameters {
    Float4s x;       // [rows, slots, width]
    Float4sOut y;    // [rows, width]
    Uints choices;   // see include/choices.glsl
    Step step_;
    uint slots;
    uint width;
};

void main() {
    const uint row = gl_WorkGroupID.y;
    const uint quad = gl_GlobalInvocationID.x;
    if (row >= step_.rowCount || quad >= width / 4) return;
    const uint at = row * (width / 4) + quad;
    vec4 sum = ACCUMULATE ? y.at[at] : vec4(0);
    for (uint slot = 0; slot < slots; slot++) {
        const float weight = uintBitsToFloat(choices.at[choiceAt(row, slot, slots) + 1]);
        sum += weight * x.at[(row * slots + slot) * (width / 4) + quad];
    }
    y.at[at] = sum;
}
