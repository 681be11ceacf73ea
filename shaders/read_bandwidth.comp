// Reads a buffer as fast as the device can: the floor that decoding is measured against. Every
// invocation takes 16 bytes at a time, four in flight; the sum is stored so that nothing is
// optimized away.
#version 460
#include "include/memory.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Parameters {
    Uint4s source;
    UintsOut sums;  // one a workgroup
    uint quadCount; // 16-byte pieces; a multiple of four times the invocations
};

void main() {
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uvec4 sum = uvec4(0);
    for (uint i = gl_GlobalInvocationID.x; i < quadCount; i += 4 * stride) {
        const uvec4 a = source.at[i];
        const uvec4 b = source.at[i + stride];
        const uvec4 c = source.at[i + 2 * stride];
        const uvec4 d = source.at[i + 3 * stride];
        sum ^= (a ^ b) ^ (c ^ d);
    }
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x5EED5EED) sums.at[gl_WorkGroupID.x] = sum.x;
}
