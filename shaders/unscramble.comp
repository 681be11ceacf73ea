// Heads that attention on matrix units left scrambled (include/scramble.glsl) as they should be, in
// place, and through their gates if they have any. One workgroup a head and row.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint QUADS = 32;  // of a head
layout(constant_id = 2) const bool GATED = false;

layout(push_constant, std430) uniform Parameters {
    Float4s query;  // [rows, heads, query | gate], with GATED
    Float4sOut x;   // [rows, heads, QUADS]
    Step step_;
    uint heads;
};

shared vec4 room[1][QUADS];
const uint HEAD_LANES = WORKGROUP;
void headOrder() { barrier(); }
#define HEADS room
#include "include/scramble.glsl"

void main() {
    const uint row = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint head = row * heads + gl_WorkGroupID.x;
    const uint lane = gl_LocalInvocationID.x;
    for (uint i = lane; i < QUADS; i += WORKGROUP) room[0][i] = x.at[head * QUADS + i];
    unscrambleHead(0, QUADS, lane, true);
    for (uint i = lane; i < QUADS; i += WORKGROUP) {
        vec4 value = room[0][i] * signsOf(i);
        if (GATED) value /= 1.0 + exp(-query.at[(2 * head + 1) * QUADS + i]);
        x.at[head * QUADS + i] = value;
    }
}
