// Attention of one query row over the paged cache: softmax(q · Kᵀ) · V with a running maximum
// (Milakov & Gimelshein 2018), for all GROUP query heads that share a key/value head, so that keys
// and values are read once. Each invocation scores one key of a tile at a time, then owns some
// pairs of the head's width for the weighted sum. Grid: key/value heads × rows × SPLITS parts of
// the keys; with SPLITS > 1 the parts are merged by attention_merge. Scores may be capped softly,
// and a head may have a sink: a score that takes its share of the weights and has no value (Xiao et
// al. 2023, arXiv 2309.17453, as gpt-oss learns it).
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/cache.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint HEAD_WIDTH = 128;
layout(constant_id = 2) const uint GROUP = 4;
layout(constant_id = 3) const uint SPLITS = 1;
layout(constant_id = 4) const uint VALUE_WIDTH = 128;
layout(constant_id = 5) const bool CAPPED = false;
layout(constant_id = 6) const bool SINKS = false;
#include "include/reduce.glsl"
#include "include/soft_cap.glsl"
#include "include/attention_parts.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s query;       // [rows, heads, HEAD_WIDTH]
    Uint4s keyCache;     // see cache.glsl
    Uints valueCache;
    FloatsOut result;    // [rows, heads, VALUE_WIDTH]
    FloatsOut parts;     // see attention_parts.glsl
    Step step_;
    Floats sinks;        // [heads], read with SINKS
    uint kvHeads;
    uint window;         // keys that a query sees, itself included
    float scale;
    float cap;           // of the scores, read with CAPPED
};

const uint PAIRS = VALUE_WIDTH / 2;
const uint LANE_PAIRS = (PAIRS + WORKGROUP - 1) / WORKGROUP;
const uint QUADS = HEAD_WIDTH / 4;

// A finite floor: the difference of two infinities would be no number.
const float LOWEST = -1e30;

shared vec4 queries[GROUP][QUADS];
shared float weights[GROUP][WORKGROUP];

void main() {
    const uint kvHead = gl_WorkGroupID.x;
    const uint row = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint lane = gl_LocalInvocationID.x;
    const uint sequence = stepSequence(step_, row);
    const uvec2 range = attentionRange(stepPosition(step_, row), window, gl_WorkGroupID.z, SPLITS, WORKGROUP);

    const uint firstHead = row * kvHeads * GROUP + kvHead * GROUP;
    for (uint i = lane; i < GROUP * QUADS; i += WORKGROUP) {
        queries[i / QUADS][i % QUADS] = query.at[firstHead * QUADS + i] * scale;
    }
    barrier();

    float best[GROUP];
    float total[GROUP];
    vec2 sums[GROUP][LANE_PAIRS];
    [[unroll]] for (uint g = 0; g < GROUP; g++) {
        best[g] = LOWEST;
        total[g] = 0;
        [[unroll]] for (uint i = 0; i < LANE_PAIRS; i++) sums[g][i] = vec2(0);
    }
    for (uint first = range.x; first < range.y; first += WORKGROUP) {
        const uint key = first + lane;
        float scores[GROUP];
        [[unroll]] for (uint g = 0; g < GROUP; g++) scores[g] = 0;
        if (key < range.y) {
            const uint block = stepBlock(step_, sequence, key / BLOCK_TOKENS);
            const uint base = cacheWord(block, kvHead, key % BLOCK_TOKENS, kvHeads, HEAD_WIDTH) / 4;
            for (uint i = 0; i < QUADS / 2; i++) {
                const uvec4 words = keyCache.at[base + i];
                const vec4 low = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
                const vec4 high = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
                [[unroll]] for (uint g = 0; g < GROUP; g++) {
                    scores[g] += dot(queries[g][2 * i], low) + dot(queries[g][2 * i + 1], high);
                }
            }
        }
        [[unroll]] for (uint g = 0; g < GROUP; g++) {
            if (CAPPED) scores[g] = softCap(scores[g], cap);
            const float next = max(best[g], workgroupMax(key < range.y ? scores[g] : LOWEST));
            const float weight = key < range.y ? exp(scores[g] - next) : 0;
            const float shrink = exp(best[g] - next);
            weights[g][lane] = weight;
            total[g] = total[g] * shrink + workgroupSum(weight);
            best[g] = next;
            [[unroll]] for (uint i = 0; i < LANE_PAIRS; i++) sums[g][i] *= shrink;
        }
        barrier();
        for (uint k = 0; k < min(WORKGROUP, range.y - first); k++) {
            const uint block = stepBlock(step_, sequence, (first + k) / BLOCK_TOKENS);
            const uint base = cacheWord(block, kvHead, (first + k) % BLOCK_TOKENS, kvHeads, VALUE_WIDTH);
            [[unroll]] for (uint i = 0; i < LANE_PAIRS; i++) {
                const uint pair = lane + i * WORKGROUP;
                if (pair < PAIRS) {
                    const vec2 v = unpackHalf2x16(valueCache.at[base + pair]);
                    [[unroll]] for (uint g = 0; g < GROUP; g++) sums[g][i] += weights[g][k] * v;
                }
            }
        }
        barrier();
    }
    [[unroll]] for (uint g = 0; g < GROUP; g++) {
        const uint head = firstHead + g;
        if (SINKS && SPLITS == 1) {
            // The sums are relative to the best score; a larger sink shrinks them to nothing.
            const float sink = sinks.at[kvHead * GROUP + g];
            total[g] = total[g] * exp(min(best[g] - sink, 0)) + exp(min(sink - best[g], 0));
            [[unroll]] for (uint i = 0; i < LANE_PAIRS; i++) sums[g][i] *= exp(min(best[g] - sink, 0));
        }
        [[unroll]] for (uint i = 0; i < LANE_PAIRS; i++) {
            const uint pair = lane + i * WORKGROUP;
            if (pair < PAIRS) {
                if (SPLITS == 1) {
                    const vec2 mean = sums[g][i] / total[g];
                    result.at[head * VALUE_WIDTH + 2 * pair] = mean.x;
                    result.at[head * VALUE_WIDTH + 2 * pair + 1] = mean.y;
                } else {
                    const uint at = partBase(head, gl_WorkGroupID.z, SPLITS, VALUE_WIDTH) + PART_HEADER + 2 * pair;
                    parts.at[at] = sums[g][i].x;
                    parts.at[at + 1] = sums[g][i].y;
                }
            }
        }
        if (SPLITS > 1 && lane == 0) {
            const uint at = partBase(head, gl_WorkGroupID.z, SPLITS, VALUE_WIDTH);
            parts.at[at] = best[g];
            parts.at[at + 1] = total[g];
        }
    }
}
