// Rotary position embedding of queries and keys (see include/rope.glsl) and the write of keys and
// values to the cache, to the slot of their position: as halves or as codes (include/cache_codes.glsl),
// and queries are scrambled if keys are. One workgroup a row and head: first
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
layout(constant_id = 8) const uint KEY_TYPE = F16;
layout(constant_id = 9) const uint VALUE_TYPE = F16;
#include "include/reduce.glsl"
#include "include/codes.glsl"

const uint HEAD_LANES = WORKGROUP;
uint headLane() { return gl_LocalInvocationID.x; }
float headSum(float value) { return workgroupSum(value); }
#include "include/rope.glsl"
#include "include/cache_codes.glsl"

const bool CODED = KEY_TYPE + VALUE_TYPE < 2 * F16;
const uint HEAD_ROOM = CODED ? 128 : CHUNK_QUADS;  // of heads up to 512 wide
shared vec4 heads_[1][HEAD_ROOM];
void headOrder() { barrier(); }
#define HEADS heads_
const uint DESKS = 1;
#include "include/scramble.glsl"
#include "include/cache_encode.glsl"

layout(push_constant, std430) uniform Parameters {
    FloatsOut query;      // [rows, heads, queryStride], of which the first headWidth values count
    Floats key;           // [rows, kvHeads, headWidth]
    Floats value;         // [rows, kvHeads, valueWidth]
    UintsOut keyCache;    // see cache.glsl
    UintsOut valueCache;
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

// Pairs that an invocation reads before it stores the first of them: a load may not pass a store, and there
// is nobody else to wait with.
const uint AT_ONCE = 2;

// What makes the root mean square of a head 1.
float normScale(Floats source, uint base, uint width) {
    precise float squares = 0;
    for (uint i = base + 4 * headLane(); i < base + width; i += 4 * HEAD_LANES) {
        squares += squaresOf(vec4(source.at[i], source.at[i + 1], source.at[i + 2], source.at[i + 3]));
    }
    return normFactor(squares, width);
}

// The value at `i` of a head before rotation.
float headValue(Floats source, uint base, uint i, float scale, bool normed, Floats weight) {
    precise const float value = source.at[base + i] * scale;
    precise const float weighted = normed ? value * weight.at[i] : value;
    return weighted;
}

// Scores of far positions are sharpened (Nakanishi 2025, arXiv 2501.19399, as Llama 4 has it).
float sharpness(uint position) {
    if (temperature == 0.0) return 1.0;
    return 1.0 + temperature * log(float(position / temperatureSpan) + 1.0);
}

void storeQuery(uint base, uint i, float value) {
    if (isScrambled(KEY_TYPE)) heads_[0][i / 4][i % 4] = value;
    else query.at[base + i] = value;
}

void rotateQuery(uint row, uint head, uint position) {
    const uint base = (row * heads + head) * queryStride;
    Floats source = Floats(query);
    float scale = sharpness(position);
    if (NORM_QUERY) scale *= normScale(source, base, headWidth);
    for (uint first = headLane(); first < ROTARY / 2; first += AT_ONCE * HEAD_LANES) {
        vec2 pairs[AT_ONCE];
        [[unroll]] for (uint j = 0; j < AT_ONCE; j++) {
            const uint p = min(first + j * HEAD_LANES, ROTARY / 2 - 1);
            const uvec2 pair = pairOf(p);
            pairs[j] = turned(vec2(headValue(source, base, pair.x, scale, NORM_QUERY, queryNorm),
                                   headValue(source, base, pair.y, scale, NORM_QUERY, queryNorm)),
                              rotation(position, frequencies.at[p]) * MAGNITUDE);
        }
        [[unroll]] for (uint j = 0; j < AT_ONCE; j++) {
            const uint p = first + j * HEAD_LANES;
            if (p >= ROTARY / 2) break;
            storeQuery(base, pairOf(p).x, pairs[j].x);
            storeQuery(base, pairOf(p).y, pairs[j].y);
        }
    }
    for (uint i = ROTARY + headLane(); i < headWidth; i += HEAD_LANES) {
        storeQuery(base, i, headValue(source, base, i, scale, NORM_QUERY, queryNorm));
    }
    if (!isScrambled(KEY_TYPE)) return;
    scrambleHead(0, headWidth / 4, headLane(), true);
    for (uint i = headLane(); i < headWidth; i += HEAD_LANES) query.at[base + i] = heads_[0][i / 4][i % 4];
}

float rotatedKey(uint base, uint i, float scale, uint position) {
    if (i >= ROTARY) return headValue(key, base, i, scale, NORM_KEY, keyNorm);
    const uint p = NEIGHBOURS ? i / 2 : i % (ROTARY / 2);
    const uvec2 pair = pairOf(p);
    const vec2 v = turned(vec2(headValue(key, base, pair.x, scale, NORM_KEY, keyNorm),
                               headValue(key, base, pair.y, scale, NORM_KEY, keyNorm)),
                          rotation(position, frequencies.at[p]) * MAGNITUDE);
    return i == pair.x ? v.x : v.y;
}

void encode(uint type, UintsOut cache, uint block, uint kvHead, uint position, uint width) {
    const uint tile = cacheTile(type, block, kvHead, kvHeads, width);
    encodeHead(type, 0, 0, width / 4, cache, tile, position % BLOCK_TOKENS, headLane(), true);
}

void storePairs(UintsOut cache, uint slot, uint first, uint width, vec2 pairs[AT_ONCE]) {
    [[unroll]] for (uint j = 0; j < AT_ONCE; j++) {
        const uint i = first + j * HEAD_LANES;
        if (i < width / 2) cache.at[slot + i] = packHalf2x16(pairs[j]);
    }
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
        if (KEY_TYPE != F16) {
            for (uint i = headLane(); i < width; i += HEAD_LANES) {
                heads_[0][i / 4][i % 4] = rotatedKey(base, i, scale, position);
            }
            encode(KEY_TYPE, keyCache, block, kvHead, position, width);
            return;
        }
        for (uint first = headLane(); first < width / 2; first += AT_ONCE * HEAD_LANES) {
            vec2 pairs[AT_ONCE];
            [[unroll]] for (uint j = 0; j < AT_ONCE; j++) {
                const uint i = 2 * min(first + j * HEAD_LANES, width / 2 - 1);
                pairs[j] = vec2(rotatedKey(base, i, scale, position), rotatedKey(base, i + 1, scale, position));
            }
            storePairs(keyCache, slot, first, width, pairs);
        }
    } else {
        const float scale = NORM_VALUE ? normScale(value, base, width) : 1;
        if (VALUE_TYPE != F16) {
            for (uint i = headLane(); i < width; i += HEAD_LANES) {
                heads_[0][i / 4][i % 4] = value.at[base + i] * scale;
            }
            encode(VALUE_TYPE, valueCache, block, kvHead, position, width);
            return;
        }
        for (uint first = headLane(); first < width / 2; first += AT_ONCE * HEAD_LANES) {
            vec2 pairs[AT_ONCE];
            [[unroll]] for (uint j = 0; j < AT_ONCE; j++) {
                const uint i = base + 2 * min(first + j * HEAD_LANES, width / 2 - 1);
                pairs[j] = vec2(value.at[i], value.at[i + 1]) * scale;
            }
            storePairs(valueCache, slot, first, width, pairs);
        }
    }
}
