// Gathers one field of every block of a quantized tensor into a plane of its own, so that it starts
// at aligned addresses: target[block, 0 … fieldBytes) = source[block, fieldOffset …). One
// invocation a word of the target.
#version 460
#include "include/memory.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Parameters {
    Uints source;     // blocks as in the file
    UintsOut target;
    uint blockBytes;
    uint fieldOffset;
    uint fieldBytes;
    uint targetBytes; // of the whole plane part
    uint groupsX;     // workgroups are laid out in two dimensions: there may be more than 65535
};

void main() {
    const uint word = (gl_WorkGroupID.y * groupsX + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (word * 4 >= targetBytes) return;
    uint result = 0;
    for (uint i = 0; i < 4; i++) {
        const uint at = word * 4 + i;
        if (at >= targetBytes) break;
        const uint from = (at / fieldBytes) * blockBytes + fieldOffset + at % fieldBytes;
        result |= ((source.at[from / 4] >> (8 * (from & 3))) & 0xFF) << (8 * i);
    }
    target.at[word] = result;
}
