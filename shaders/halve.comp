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
// Quads of a row that an invocation holds, if all of them find room: the row is then read once.
layout(constant_id = 6) const uint HELD = 0;
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

const uint ROOM = HELD > 0 ? HELD : 1;

struct Held {
    vec4 values[ROOM];
    vec4 weights[ROOM];  // with NORM
};

vec4 gatedQuad(uint at) {
    const vec4 g = x.at[at];
    const vec4 u = up.at[at];
    return vec4(activated(g.x, u.x), activated(g.y, u.y), activated(g.z, u.z), activated(g.w, u.w));
}

vec4 quadAt(uint row, uint quad) {
    const uint at = row * (width / 4) + quad;
    return GATED ? gatedQuad(at) : x.at[at];
}

vec4 weighted(vec4 value, vec4 weight_) { return NORM ? value * weight_ : value; }
vec4 weightAt(uint quad) { return NORM ? weight.at[quad] : vec4(1); }

vec4 valueOf(uint row, uint quad, float scale) { return weighted(quadAt(row, quad) * scale, weightAt(quad)); }

float largestOf(vec4 v) {
    const vec4 magnitudes = abs(v);
    return max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
}

float normScale(float squares) { return inversesqrt(squares / float(width) + epsilon); }

// Scale and largest value of a row.
vec2 survey(uint row, Held held) {
    float squares = 0;
    float largest = 0;
    if (HELD > 0) {
        [[unroll]] for (uint i = 0; i < HELD; i++) {
            if (NORM) squares += dot(held.values[i], held.values[i]);
            largest = max(largest, largestOf(weighted(held.values[i], held.weights[i])));
        }
        if (!NORM) return vec2(1, workgroupMax(largest));
        // A positive scale does not change which one is the largest.
        const vec2 found = workgroupSumMax(squares, largest);
        const float scale = normScale(found.x);
        return vec2(scale, found.y * scale);
    }
    float scale = 1;
    if (NORM) {
        for (uint quad = gl_LocalInvocationID.x; quad < width / 4; quad += WORKGROUP) {
            const vec4 v = quadAt(row, quad);
            squares += dot(v, v);
        }
        scale = normScale(workgroupSum(squares));
    }
    for (uint quad = gl_LocalInvocationID.x; quad < width / 4; quad += WORKGROUP) {
        largest = max(largest, largestOf(valueOf(row, quad, scale)));
    }
    return vec2(scale, workgroupMax(largest));
}

void storeQuad(uint row, uint quad, vec4 v) {
    if (quad >= width / 4) return;
    y.at[TILED ? tiledQuad(row, quad, gl_NumWorkGroups.x) : row * (width / 2) + quad] = halfQuad(v);
}

void main() {
    const uint row = gl_WorkGroupID.x;
    Held held;
    // On their way before it is known whether there is such a row; there is room for it.
    [[unroll]] for (uint i = 0; i < HELD; i++) {
        const uint quad = i * WORKGROUP + gl_LocalInvocationID.x;
        const bool isThere = quad < width / 4;
        held.values[i] = isThere ? quadAt(row, quad) : vec4(0);
        if (NORM) held.weights[i] = isThere ? weightAt(quad) : vec4(0);
    }
    if (row >= (OUTPUTS ? step_.outputCount : step_.rowCount * parts)) return;
    const vec2 surveyed = survey(row, held);
    // Exponents with their bias of 127: of the step, 12 less; its inverse is 2^(254 - exponent).
    const uint exponent = max(floatBitsToUint(surveyed.y) >> 23, 13) - 12;
    const float inverse = uintBitsToFloat((254 - exponent) << 23);
    if (HELD > 0) {
        // Halves lie where others have read.
        if (!TILED) barrier();
        [[unroll]] for (uint i = 0; i < HELD; i++) {
            const vec4 v = weighted(held.values[i] * surveyed.x, held.weights[i]) * inverse;
            storeQuad(row, i * WORKGROUP + gl_LocalInvocationID.x, v);
        }
    } else {
        // A turn's halves lie where this or an earlier turn has read its floats.
        for (uint first = 0; first < width / 4; first += WORKGROUP) {
            const uint quad = first + gl_LocalInvocationID.x;
            const vec4 v = quad < width / 4 ? valueOf(row, quad, surveyed.x) * inverse : vec4(0);
            barrier();
            storeQuad(row, quad, v);
        }
    }
    if (gl_LocalInvocationID.x == 0) {
        const uint capacity = gl_NumWorkGroups.x;
        const uint at = TILED ? capacity * (width / 4) + row / 2 : row * (width / 2) + width / 4;
        y.at[at][TILED ? row & 1 : 0] = exponent << 23;
    }
}
