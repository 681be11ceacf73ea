// Rotary position embedding (Su et al. 2021) of queries and keys, before it their RMS normalization
// where a model has that (Henry et al. 2020, arXiv 2010.04245), and the write of keys and values to
// the cache: as halves, to the slot of their position. One workgroup a row and head: first the
// query heads, then the key heads, then the value heads.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/cache.glsl"
#include "include/rotary.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
// Pairs (2i, 2i + 1) as in Llama, or (i, i + ROTARY / 2) as in NeoX.
layout(constant_id = 1) const bool NEIGHBOURS = true;
layout(constant_id = 2) const bool NORM_QUERY = false;
layout(constant_id = 3) const bool NORM_KEY = false;
layout(constant_id = 4) const bool NORM_VALUE = false;
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    FloatsOut query;      // [rows, heads, queryStride], of which the first headWidth values count
    Floats key;           // [rows, kvHeads, headWidth]
    Floats value;         // [rows, kvHeads, valueWidth]
    UintsOut keyCache;    // [blocks, kvHeads, BLOCK_TOKENS, headWidth] halves
    UintsOut valueCache;  // [blocks, kvHeads, BLOCK_TOKENS, valueWidth] halves
    Frequencies frequencies;  // [rotary / 2]
    Floats queryNorm;     // [headWidth], read with NORM_QUERY
    Floats keyNorm;       // [headWidth], read with NORM_KEY
    Step step_;
    uint heads;
    uint kvHeads;
    uint headWidth;
    uint valueWidth;
    uint queryStride;
    uint rotary;          // leading values of a head that are rotated
    float magnitude;      // of cosine and sine: YaRN's attention factor, else 1
    float epsilon;        // of the norms
    float temperature;    // growth of queries with the logarithm of their position; 0: none
    uint temperatureSpan; // positions between two steps of that growth
};

// Values i and j of pair p.
uvec2 pairOf(uint p) {
    return NEIGHBOURS ? uvec2(2 * p, 2 * p + 1) : uvec2(p, p + rotary / 2);
}

vec2 turned(vec2 v, uint p, uint position) {
    const vec2 turn = rotation(position, frequencies.at[p]) * magnitude;
    return vec2(v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x);
}

// What makes the root mean square of a head 1.
float normScale(FloatsOut source, uint base, uint width) {
    float squares = 0;
    for (uint i = gl_LocalInvocationID.x; i < width; i += WORKGROUP) {
        squares += source.at[base + i] * source.at[base + i];
    }
    return inversesqrt(workgroupSum(squares) / float(width) + epsilon);
}

// Scores of far positions are sharpened (Nakanishi 2025, arXiv 2501.19399, as Llama 4 has it).
float sharpness(uint position) {
    if (temperature == 0.0) return 1.0;
    return 1.0 + temperature * log(float(position / temperatureSpan) + 1.0);
}

// The value at `i` of a query head before rotation.
float queryAt(uint base, uint i, float scale) {
    return NORM_QUERY ? query.at[base + i] * scale * queryNorm.at[i] : query.at[base + i] * scale;
}

void rotateQuery(uint row, uint head, uint position) {
    const uint base = (row * heads + head) * queryStride;
    float scale = sharpness(position);
    if (NORM_QUERY) scale *= normScale(query, base, headWidth);
    for (uint p = gl_LocalInvocationID.x; p < rotary / 2; p += WORKGROUP) {
        const uvec2 pair = pairOf(p);
        const vec2 v = vec2(queryAt(base, pair.x, scale), queryAt(base, pair.y, scale));
        const vec2 t = turned(v, p, position);
        query.at[base + pair.x] = t.x;
        query.at[base + pair.y] = t.y;
    }
    for (uint i = rotary + gl_LocalInvocationID.x; i < headWidth; i += WORKGROUP) {
        query.at[base + i] = queryAt(base, i, scale);
    }
}

// The value at `i` of a key head before rotation.
float keyAt(uint base, uint i, float scale) {
    return NORM_KEY ? key.at[base + i] * scale * keyNorm.at[i] : key.at[base + i];
}

// The value at `i` of a key head after rotation.
float rotatedKey(uint base, uint i, uint position, float scale) {
    if (i >= rotary) return keyAt(base, i, scale);
    const uint p = NEIGHBOURS ? i / 2 : i % (rotary / 2);
    const uvec2 pair = pairOf(p);
    const vec2 v = turned(vec2(keyAt(base, pair.x, scale), keyAt(base, pair.y, scale)), p, position);
    return i == pair.x ? v.x : v.y;
}

void main() {
    const uint row = gl_WorkGroupID.x;
    const uint head = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint position = stepPosition(step_, row);
    if (head < heads) {
        rotateQuery(row, head, position);
        return;
    }
    const bool isKey = head < heads + kvHeads;
    const uint kvHead = head - heads - (isKey ? 0 : kvHeads);
    const uint width = isKey ? headWidth : valueWidth;
    const uint base = (row * kvHeads + kvHead) * width;
    const uint block = stepBlock(step_, stepSequence(step_, row), position / BLOCK_TOKENS);
    const uint slot = cacheWord(block, kvHead, position % BLOCK_TOKENS, kvHeads, width);
    float scale = 1;
    if (isKey) {
        if (NORM_KEY) scale = normScale(FloatsOut(key), base, width);
        for (uint i = gl_LocalInvocationID.x; i < width / 2; i += WORKGROUP) {
            const vec2 pair = vec2(rotatedKey(base, 2 * i, position, scale),
                                   rotatedKey(base, 2 * i + 1, position, scale));
            keyCache.at[slot + i] = packHalf2x16(pair);
        }
    } else {
        if (NORM_VALUE) scale = normScale(FloatsOut(value), base, width);
        for (uint i = gl_LocalInvocationID.x; i < width / 2; i += WORKGROUP) {
            const vec2 pair = vec2(value.at[base + 2 * i], value.at[base + 2 * i + 1]);
            valueCache.at[slot + i] = packHalf2x16(pair * scale);
        }
    }
}
