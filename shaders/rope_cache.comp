// Rotary position embedding (Su et al. 2021) of queries and keys, and the write of keys and values
// to the cache. Queries are rotated in place; keys and values go to their cache slot as halves. One
// workgroup a row and head: first the query heads, then the key heads, then the value heads. Where
// a model wants it, a head is RMS-normalized first (Henry et al. 2020, arXiv 2010.04245).
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
    FloatsOut query;      // [rows, heads, headWidth]
    Floats key;           // [rows, kvHeads, headWidth]
    Floats value;         // [rows, kvHeads, valueWidth]
    UintsOut keyCache;    // [blocks, kvHeads, BLOCK_TOKENS, headWidth] halves
    UintsOut valueCache;  // [blocks, kvHeads, BLOCK_TOKENS, valueWidth] halves
    Frequencies frequencies;  // [rotary / 2]
    Step step_;
    Floats queryNorm;     // [headWidth], read with NORM_QUERY
    Floats keyNorm;       // [headWidth], read with NORM_KEY
    uint heads;
    uint kvHeads;
    uint headWidth;
    uint valueWidth;
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

vec2 rotated(vec2 v, uint p, uint position) {
    const vec2 turn = rotation(position, frequencies.at[p]) * magnitude;
    return vec2(v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x);
}

float inverseRms(float squares, uint width) {
    return inversesqrt(workgroupSum(squares) / float(width) + epsilon);
}

// Scores of far positions are sharpened (Nakanishi 2025, arXiv 2501.19399, as Llama 4 has it).
float sharpness(uint position) {
    if (temperature == 0.0) return 1.0;
    return 1.0 + temperature * log(float(position / temperatureSpan) + 1.0);
}

void turnQuery(uint base, uint position) {
    float scale = sharpness(position);
    if (NORM_QUERY) {
        float squares = 0;
        for (uint i = gl_LocalInvocationID.x; i < headWidth; i += WORKGROUP) {
            squares += query.at[base + i] * query.at[base + i];
        }
        scale *= inverseRms(squares, headWidth);
    }
    for (uint p = gl_LocalInvocationID.x; p < rotary / 2; p += WORKGROUP) {
        const uvec2 pair = pairOf(p);
        vec2 v = vec2(query.at[base + pair.x], query.at[base + pair.y]) * scale;
        if (NORM_QUERY) v *= vec2(queryNorm.at[pair.x], queryNorm.at[pair.y]);
        v = rotated(v, p, position);
        query.at[base + pair.x] = v.x;
        query.at[base + pair.y] = v.y;
    }
    for (uint i = rotary + gl_LocalInvocationID.x; i < headWidth; i += WORKGROUP) {
        query.at[base + i] *= NORM_QUERY ? scale * queryNorm.at[i] : scale;
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
    const vec2 v = rotated(vec2(keyAt(base, pair.x, scale), keyAt(base, pair.y, scale)), p, position);
    return i == pair.x ? v.x : v.y;
}

void storeKey(uint base, uint slot, uint position) {
    float scale = 1;
    if (NORM_KEY) {
        float squares = 0;
        for (uint i = gl_LocalInvocationID.x; i < headWidth; i += WORKGROUP) {
            squares += key.at[base + i] * key.at[base + i];
        }
        scale = inverseRms(squares, headWidth);
    }
    for (uint i = gl_LocalInvocationID.x; i < headWidth / 2; i += WORKGROUP) {
        const vec2 pair = vec2(rotatedKey(base, 2 * i, position, scale),
                               rotatedKey(base, 2 * i + 1, position, scale));
        keyCache.at[slot + i] = packHalf2x16(pair);
    }
}

void storeValue(uint base, uint slot) {
    float scale = 1;
    if (NORM_VALUE) {
        float squares = 0;
        for (uint i = gl_LocalInvocationID.x; i < valueWidth; i += WORKGROUP) {
            squares += value.at[base + i] * value.at[base + i];
        }
        scale = inverseRms(squares, valueWidth);
    }
    for (uint i = gl_LocalInvocationID.x; i < valueWidth / 2; i += WORKGROUP) {
        const vec2 pair = vec2(value.at[base + 2 * i], value.at[base + 2 * i + 1]);
        valueCache.at[slot + i] = packHalf2x16(pair * scale);
    }
}

void main() {
    const uint row = gl_WorkGroupID.x;
    const uint head = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint position = stepPosition(step_, row);
    if (head < heads) {
        turnQuery((row * heads + head) * headWidth, position);
        return;
    }
    const bool isKey = head < heads + kvHeads;
    const uint kvHead = head - heads - (isKey ? 0 : kvHeads);
    const uint width = isKey ? headWidth : valueWidth;
    const uint base = (row * kvHeads + kvHead) * width;
    const uint block = stepBlock(step_, stepSequence(step_, row), position / BLOCK_TOKENS);
    const uint slot = cacheWord(block, kvHead, position % BLOCK_TOKENS, kvHeads, width);
    if (isKey) storeKey(base, slot, position);
    else storeValue(base, slot);
}
