// Rotary position embedding (Su et al. 2021) of queries and keys, and the write of keys and values
// to the cache. Queries are rotated in place; keys and values go to their cache slot as halves. One
// workgroup a row and head: first the query heads, then the key heads, then the value heads.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/cache.glsl"
#include "include/rotary.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
// Pairs (2i, 2i + 1) as in Llama, or (i, i + ROTARY / 2) as in NeoX.
layout(constant_id = 1) const bool NEIGHBOURS = true;

layout(push_constant, std430) uniform Parameters {
    FloatsOut query;      // [rows, heads, headWidth]
    Floats key;           // [rows, kvHeads, headWidth]
    Floats value;         // [rows, kvHeads, headWidth]
    UintsOut keyCache;    // [blocks, kvHeads, BLOCK_TOKENS, headWidth] halves
    UintsOut valueCache;  // [blocks, kvHeads, BLOCK_TOKENS, headWidth] halves
    Frequencies frequencies;  // [rotary / 2]
    Step step_;
    uint heads;
    uint kvHeads;
    uint headWidth;
    uint rotary;          // leading values of a head that are rotated
    float magnitude;      // of cosine and sine: YaRN's attention factor, else 1
};

// Values i and j of pair p.
uvec2 pairOf(uint p) {
    return NEIGHBOURS ? uvec2(2 * p, 2 * p + 1) : uvec2(p, p + rotary / 2);
}

vec2 rotated(vec2 v, uint p, uint position) {
    const vec2 turn = rotation(position, frequencies.at[p]) * magnitude;
    return vec2(v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x);
}

// The value at `i` of a key head after rotation.
float rotatedKey(uint base, uint i, uint position) {
    if (i >= rotary) return key.at[base + i];
    const uint p = NEIGHBOURS ? i / 2 : i % (rotary / 2);
    const uvec2 pair = pairOf(p);
    const vec2 v = rotated(vec2(key.at[base + pair.x], key.at[base + pair.y]), p, position);
    return i == pair.x ? v.x : v.y;
}

void main() {
    const uint row = gl_WorkGroupID.x;
    const uint head = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint position = stepPosition(step_, row);
    if (head < heads) {
        const uint base = (row * heads + head) * headWidth;
        for (uint p = gl_LocalInvocationID.x; p < rotary / 2; p += WORKGROUP) {
            const uvec2 pair = pairOf(p);
            const vec2 v = vec2(query.at[base + pair.x], query.at[base + pair.y]);
            const vec2 turned = rotated(v, p, position);
            query.at[base + pair.x] = turned.x;
            query.at[base + pair.y] = turned.y;
        }
        return;
    }
    const bool isKey = head < heads + kvHeads;
    const uint kvHead = head - heads - (isKey ? 0 : kvHeads);
    const uint base = (row * kvHeads + kvHead) * headWidth;
    const uint block = stepBlock(step_, stepSequence(step_, row), position / BLOCK_TOKENS);
    const uint slot = cacheWord(block, kvHead, position % BLOCK_TOKENS, kvHeads, headWidth);
    for (uint i = gl_LocalInvocationID.x; i < headWidth / 2; i += WORKGROUP) {
        if (isKey) {
            const vec2 pair = vec2(rotatedKey(base, 2 * i, position),
                                   rotatedKey(base, 2 * i + 1, position));
            keyCache.at[slot + i] = packHalf2x16(pair);
        } else {
            valueCache.at[slot + i] = packHalf2x16(vec2(value.at[base + 2 * i], value.at[base + 2 * i + 1]));
        }
    }
}
