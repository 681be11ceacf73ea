// Rotary position embedding of queries and keys (see include/rope.glsl) and the write of keys and
// values to the cache: as halves, to the slot of their position. One workgroup a row and head: first
// the query heads, then the key heads, then the value heads.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/cache.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const bool NEIGHBOURS = true;
layout(constant_id = 2) const bool NORM_QUERY = false;
layout(constant_id = 3) const bool NORM_KEY = false;
layout(constant_id = 4) const bool NORM_VALUE = false;
layout(constant_id = 5) const uint ROTARY = 128;     // leading values of a head that are rotated
layout(constant_id = 6) const float MAGNITUDE = 1;   // of cosine and sine: YaRN's attention factor
layout(constant_id = 7) const float EPSILON = 0;     // of the norms
#include "include/reduce.glsl"

const uint HEAD_LANES = WORKGROUP;
uint headLane() { return gl_LocalInvocationID.x; }
float headSum(float value) { return workgroupSum(value); }
#include "include/rope.glsl"

layout(push_constant, std430) uniform Parameters {
    FloatsOut query;      // [rows, heads, queryStride], of which the first headWidth values count
    Floats key;           // [rows, kvHeads, headWidth]
    Floats value;         // [rows, kvHeads, valueWidth]
    UintsOut keyCache;    // [blocks, kvHeads, BLOCK_TOKENS, headWidth] halves
    UintsOut valueCache;  // [blocks, kvHeads, BLOCK_TOKENS, valueWidth] halves
    Frequencies frequencies;  // [ROTARY / 2]
    Floats queryNorm;     // [headWidth], read with NORM_QUERY
    Floats keyNorm;       // [headWidth], read with NORM_KEY
    Step step_;
    uint heads;
    uint kvHeads;
    uint headWidth;
    uint valueWidth;
    uint queryStride;
    float temperature;    // growth of queries with the logarithm of their position; 0: none
    uint temperatureSpan; // positions between two steps of that growth
};

// Scores of far positions are sharpened (Nakanishi 2025, arXiv 2501.19399, as Llama 4 has it).
float sharpness(uint position) {
    if (temperature == 0.0) return 1.0;
    return 1.0 + temperature * log(float(position / temperatureSpan) + 1.0);
}

void rotateQuery(uint row, uint head, uint position) {
    const uint base = (row * heads + head) * queryStride;
    Floats source = Floats(query);
    float scale = sharpness(position);
    if (NORM_QUERY) scale *= normScale(source, base, headWidth);
    for (uint p = headLane(); p < ROTARY / 2; p += HEAD_LANES) {
        const uvec2 pair = pairOf(p);
        const vec2 v = turned(vec2(headValue(source, base, pair.x, scale, NORM_QUERY, queryNorm),
                                   headValue(source, base, pair.y, scale, NORM_QUERY, queryNorm)),
                              frequencies.at[p], position);
        query.at[base + pair.x] = v.x;
        query.at[base + pair.y] = v.y;
    }
    for (uint i = ROTARY + headLane(); i < headWidth; i += HEAD_LANES) {
        query.at[base + i] = headValue(source, base, i, scale, NORM_QUERY, queryNorm);
    }
}

float rotatedKey(uint base, uint i, float scale, uint position) {
    return rotatedValue(key, base, i, scale, NORM_KEY, keyNorm, frequencies, position);
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
    if (isKey) {
        const float scale = NORM_KEY ? normScale(key, base, width) : 1;
        for (uint i = headLane(); i < width / 2; i += HEAD_LANES) {
            const vec2 pair = vec2(rotatedKey(base, 2 * i, scale, position),
                                   rotatedKey(base, 2 * i + 1, scale, position));
            keyCache.at[slot + i] = packHalf2x16(pair);
        }
    } else {
        const float scale = NORM_VALUE ? normScale(value, base, width) : 1;
        for (uint i = headLane(); i < width / 2; i += HEAD_LANES) {
            const vec2 pair = vec2(value.at[base + 2 * i], value.at[base + 2 * i + 1]);
            valueCache.at[slot + i] = packHalf2x16(pair * scale);
        }
    }
}
