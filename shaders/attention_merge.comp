// Merges the parts of a split attention: out = Σ e^(mᵢ - m) · sumᵢ / Σ e^(mᵢ - m) · totalᵢ, where
// a sink is one more part that has a total of 1 and no sum. One workgroup a row and head.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/attention_parts.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint VALUE_WIDTH = 128;
layout(constant_id = 2) const bool SINKS = false;
layout(constant_id = 3) const uint SPLITS = 2;

layout(push_constant, std430) uniform Parameters {
    Floats parts;
    FloatsOut result;  // [rows, heads, VALUE_WIDTH]
    Step step_;
    Floats sinks;      // [heads], read with SINKS
    uint heads;
};

void main() {
    if (gl_WorkGroupID.y >= step_.rowCount) return;
    const uint head = gl_WorkGroupID.y * heads + gl_WorkGroupID.x;
    const float sink = SINKS ? sinks.at[gl_WorkGroupID.x] : -1e30;
    float best = max(sink, parts.at[partBase(head, 0, SPLITS, VALUE_WIDTH)]);
    for (uint s = 1; s < SPLITS; s++) best = max(best, parts.at[partBase(head, s, SPLITS, VALUE_WIDTH)]);
    for (uint i = gl_LocalInvocationID.x; i < VALUE_WIDTH; i += gl_WorkGroupSize.x) {
        float sum = 0;
        float total = SINKS ? exp(sink - best) : 0;
        for (uint s = 0; s < SPLITS; s++) {
            const uint at = partBase(head, s, SPLITS, VALUE_WIDTH);
            const float weight = exp(parts.at[at] - best);
            total += weight * parts.at[at + 1];
            sum += weight * parts.at[at + PART_HEADER + i];
        }
        result.at[head * VALUE_WIDTH + i] = sum / total;
    }
}
