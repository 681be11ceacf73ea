// Rows of activations to halves, RMS-normalized first with NORM, or a gated activation with GATED: what
// matrix units read. Each row lies in the first half of the room of its floats and may be converted where
// it is: `width` halves, those of a quad in the order 0 2 1 3, then the row's step. Steps are powers of two
// such that the largest value comes to between 4096 and 8192: nothing overflows, and what is 2^26 times
// smaller is still exact. With TILED they lie elsewhere, in tiles (include/tiles.glsl). One workgroup a row;
// a row of the step may be several of them.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 64;
layout(constant_id = 1) const bool NORM = false;
layout(constant_id = 2) const bool OUTPUTS = false;  // rows are the step's output rows, packed
layout(constant_id = 3) const bool TILED = false;
layout(constant_id = 4) const bool GATED = false;
layout(constant_id = 5) const uint ACTIVATION = 0;
#include "include/reduce.glsl"
#include "include/gate.glsl"
#include "include/tiles.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s x;       // [rows, width], or gates with GATED
    Float4s weight;  // [width], with NORM
    Float4s up;      // [rows, width], with GATED
    Uint2sOut y;     // [rows, width] halves and a step a row, each row in the room of its floats
    Step step_;
    uint width;
    uint parts;      // rows for each row of the step
    float epsilon;
};

vec4 valueOf(uint row, uint quad, float scale) {
    const uint at = row * (width / 4) + quad;
    const vec4 value = x.at[at] * scale;
    if (GATED) {
        const vec4 u = up.at[at];
        return vec4(activated(value.x, u.x), activated(value.y, u.y), activated(value.z, u.z), activated(value.w, u.w));
    }
    return NORM ? value * weight.at[quad] : value;
}

void main() {
    const uint row = gl_WorkGroupID.x;
    if (row >= (OUTPUTS ? step_.outputCount : step_.rowCount * parts)) return;
    float scale = 1;
    if (NORM) {
        float squares = 0;
        for (uint quad = gl_LocalInvocationID.x; quad < width / 4; quad += WORKGROUP) {
            const vec4 v = x.at[row * (width / 4) + quad];
            squares += dot(v, v);
        }
        scale = inversesqrt(workgroupSum(squares) / float(width) + epsilon);
    }
    float largest = 0;
    for (uint quad = gl_LocalInvocationID.x; quad < width / 4; quad += WORKGROUP) {
        const vec4 v = abs(valueOf(row, quad, scale));
        largest = max(largest, max(max(v.x, v.y), max(v.z, v.w)));
    }
    // Exponents with their bias of 127: of the step, 12 less; its inverse is 2^(254 - exponent).
    const uint exponent = max(floatBitsToUint(workgroupMax(largest)) >> 23, 13) - 12;
    const float inverse = uintBitsToFloat((254 - exponent) << 23);
    const uint capacity = gl_NumWorkGroups.x;
    // A turn's halves lie where this or an earlier turn has read its floats.
    for (uint first = 0; first < width / 4; first += WORKGROUP) {
        const uint quad = first + gl_LocalInvocationID.x;
        const vec4 v = quad < width / 4 ? valueOf(row, quad, scale) * inverse : vec4(0);
        barrier();
        const uint at = TILED ? tiledQuad(row, quad, capacity) : row * (width / 2) + quad;
        if (quad < width / 4) y.at[at] = halfQuad(v);
    }
    if (gl_LocalInvocationID.x == 0) {
        const uint at = TILED ? capacity * (width / 4) + row / 2 : row * (width / 2) + width / 4;
        y.at[at][TILED ? row & 1 : 0] = exponent << 23;
    }
}
