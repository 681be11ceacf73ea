// Attention of many query rows over the paged cache on matrix units: softmax(Q · Kᵀ) · V tile by tile
// with a running maximum (Dao 2023, arXiv 2307.08691). A workgroup takes TILE_TOKENS rows with all
// GROUP query heads that share a key/value head, so that keys and values are read once for them; each of
// its subgroups holds FRAGMENT_ROWS of these queries and their sums. Tiles of keys before all windows or
// behind all positions are skipped. Rows of several sequences in a tile are served one after the other.
// Where there are few tiles, SPLITS workgroups share the keys of each; the last to finish merges.
//
// Operands are halves (queries, the cache as it is or decoded, weights between 0 and 1), scores and sums
// floats. Score caps, sinks and gates are those of attention.comp. Scrambled queries come so; results of
// scrambled values leave so, before their gates.
#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/cache.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 128;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint HEAD_WIDTH = 128;
layout(constant_id = 3) const uint GROUP = 4;
layout(constant_id = 4) const bool CAPPED = false;
layout(constant_id = 5) const bool SINKS = false;
layout(constant_id = 6) const bool GATED = false;
layout(constant_id = 7) const uint FRAGMENT_ROWS = 16;
layout(constant_id = 8) const uint FRAGMENT_COLUMNS = 16;
layout(constant_id = 9) const uint FRAGMENT_DEPTH = 16;
// Workgroups that share the width of a value, for sums that would fill the registers.
layout(constant_id = 10) const uint PARTS = 1;
// Those that share the keys of a tile.
layout(constant_id = 11) const uint SPLITS = 1;
layout(constant_id = 12) const uint KEY_TYPE = F16;
layout(constant_id = 13) const uint VALUE_TYPE = F16;
#include "include/soft_cap.glsl"
#include "include/cache_codes.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) coherent buffer Parts { vec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer PartFloats { float at[]; };

layout(push_constant, std430) uniform Parameters {
    Float4s query;      // [rows, heads, HEAD_WIDTH], or of each head [query | gate] with GATED
    Uint4s keyCache;    // see cache.glsl
    Uint4s valueCache;
    FloatsOut result;   // [rows, heads, HEAD_WIDTH]
    Step step_;
    Floats sinks;       // [heads], with SINKS
    Parts shares;       // [tiles, SPLITS, QUERIES, SHARE]: weighted sums, then (maximum, total), with SPLITS
    Counters counters;  // [tiles], zero between dispatches, with SPLITS
    uint kvHeads;
    uint window;        // keys that a query sees, itself included
    float scale;
    float cap;          // of the scores, with CAPPED
};

#define FragmentA coopmat<float16_t, gl_ScopeSubgroup, FRAGMENT_ROWS, FRAGMENT_DEPTH, gl_MatrixUseA>
#define FragmentB coopmat<float16_t, gl_ScopeSubgroup, FRAGMENT_DEPTH, FRAGMENT_COLUMNS, gl_MatrixUseB>
#define FragmentSum coopmat<float, gl_ScopeSubgroup, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator>

// One block of the cache.
const uint KEYS = BLOCK_TOKENS;
const uint SUBGROUPS = WORKGROUP / LANES;
const uint QUERIES = SUBGROUPS * FRAGMENT_ROWS;
const uint TILE_TOKENS = QUERIES / GROUP;
const uint CHUNKS = HEAD_WIDTH / 8;  // of 16 bytes
// A chunk of padding keeps rows in different banks.
const uint STRIDE = CHUNKS + 1;
const uint WEIGHT_STRIDE = KEYS / 8 + 1;
// Invocations that share a query's keys.
const uint SIDES = LANES / FRAGMENT_ROWS;
const uint SIDE_KEYS = KEYS / SIDES;
const uint PART_WIDTH = HEAD_WIDTH / PARTS;
const uint ACROSS = PART_WIDTH / FRAGMENT_COLUMNS;
const uint PATCH = FRAGMENT_ROWS * (KEYS > FRAGMENT_COLUMNS ? KEYS : FRAGMENT_COLUMNS);
const uint SHARE = PART_WIDTH / 4 + 1;  // in quads
const int BY_ROWS = gl_CooperativeMatrixLayoutRowMajor;
const int BY_COLUMNS = gl_CooperativeMatrixLayoutColumnMajor;

// A finite floor: the difference of two infinities would be no number.
const float LOWEST = -1e30;
const float HALF_MAX = 65504;

shared uvec4 queries[QUERIES * STRIDE];
shared uvec4 tile[KEYS * STRIDE];
shared uvec4 weights[QUERIES * WEIGHT_STRIDE];
// Of each subgroup: scores, or whatever else goes from fragments to invocations, column by column.
shared float patches[SUBGROUPS * PATCH];

// Orders what the invocations of a subgroup wrote to shared memory before what they read.
void subgroupOrder() {
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
}

// Of query `index` of the tile; queries without a row have the one of the last.
uint headOf(uint kvHead, uint firstRow, uint index) {
    const uint row = min(firstRow + index / GROUP, step_.rowCount - 1);
    return (row * kvHeads + kvHead) * GROUP + index % GROUP;
}

uint packClamped(vec2 pair) { return packHalf2x16(clamp(pair, -HALF_MAX, HALF_MAX)); }

void loadQueries(uint kvHead, uint firstRow) {
    for (uint i = gl_LocalInvocationIndex; i < QUERIES * CHUNKS; i += WORKGROUP) {
        const uint head = headOf(kvHead, firstRow, i / CHUNKS);
        const uint at = (GATED ? 2 * head : head) * (HEAD_WIDTH / 4) + 2 * (i % CHUNKS);
        const vec4 low = query.at[at] * scale;
        const vec4 high = query.at[at + 1] * scale;
        queries[(i / CHUNKS) * STRIDE + i % CHUNKS] =
            uvec4(packClamped(low.xy), packClamped(low.zw), packClamped(high.xy), packClamped(high.zw));
    }
}

// A block of keys or values of a head. What lies behind the end is not in the cache, and may be no number.
void loadTile(Uint4s cache, uint block, uint kvHead, uint count) {
    const uint base = cacheWord(block, kvHead, 0, kvHeads, HEAD_WIDTH) / 4;
    [[unroll]] for (uint i = gl_LocalInvocationIndex; i < KEYS * CHUNKS; i += WORKGROUP) {
        tile[(i / CHUNKS) * STRIDE + i % CHUNKS] = i / CHUNKS < count ? cache.at[base + i] : uvec4(0);
    }
}

// Two quads of a head as halves.
uvec4 decodeChunk(uint type, Uints cache, uint tile_, uint offset, uint chunk) {
    const float factor = cacheScale(type, cache, tile_, offset, HEAD_WIDTH, chunk / 4);
    const uint quad = 2 * chunk;
    const uvec2 first = quadWords(type, cache, tile_, offset, HEAD_WIDTH, quad);
    const uvec2 second = quadWords(type, cache, tile_, offset, HEAD_WIDTH, quad + 1);
    const vec4 low = quadValues(type, first, quad % CHUNK_QUADS) * factor;
    const vec4 high = quadValues(type, second, (quad + 1) % CHUNK_QUADS) * factor;
    return uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy), packHalf2x16(high.zw));
}

// The same as loadTile of keys or values that are codes.
void decodeTile(uint type, Uints cache, uint block, uint kvHead, uint count) {
    const uint tile_ = cacheTile(type, block, kvHead, kvHeads, HEAD_WIDTH);
    [[unroll]] for (uint i = gl_LocalInvocationIndex; i < KEYS * CHUNKS; i += WORKGROUP) {
        const uint offset = i / CHUNKS;
        const uint chunk = i % CHUNKS;
        tile[offset * STRIDE + chunk] = offset < count ? decodeChunk(type, cache, tile_, offset, chunk) : uvec4(0);
    }
}

// Leaves the scores of the subgroup's queries for the keys of the tile in its patch.
void scoreTile(uint firstQuery, uint patch_) {
    [[unroll]] for (uint j = 0; j < KEYS / FRAGMENT_COLUMNS; j++) {
        FragmentSum scores = FragmentSum(0.0);
        [[unroll]] for (uint k = 0; k < HEAD_WIDTH / FRAGMENT_DEPTH; k++) {
            FragmentA a;
            FragmentB b;
            coopMatLoad(a, queries, firstQuery * STRIDE + k * (FRAGMENT_DEPTH / 8), STRIDE, BY_ROWS);
            coopMatLoad(b, tile, j * FRAGMENT_COLUMNS * STRIDE + k * (FRAGMENT_DEPTH / 8), STRIDE, BY_COLUMNS);
            scores = coopMatMulAdd(a, b, scores);
        }
        coopMatStore(scores, patches, patch_ + j * FRAGMENT_ROWS * FRAGMENT_COLUMNS, FRAGMENT_ROWS, BY_COLUMNS);
    }
}

// What a query, or each of the SIDES invocations that share it, knows of the keys so far.
struct Seen {
    float best;
    float total;
};

// Turns scores into weights; returns what the sums so far have to be multiplied with. `visible`: the range
// of keys that the query sees, `first` the tile's first key.
float weigh(uint firstQuery, uint patch_, uvec2 visible, uint first, inout Seen seen) {
    const uint own = gl_SubgroupInvocationID % FRAGMENT_ROWS;
    const uint firstKey = (gl_SubgroupInvocationID / FRAGMENT_ROWS) * SIDE_KEYS;
    float scores[SIDE_KEYS];
    float best = seen.best;
    [[unroll]] for (uint i = 0; i < SIDE_KEYS; i++) {
        const uint key = first + firstKey + i;
        float score = patches[patch_ + (firstKey + i) * FRAGMENT_ROWS + own];
        if (CAPPED) score = softCap(score, cap);
        scores[i] = key >= visible.x && key < visible.y ? score : LOWEST;
        best = max(best, scores[i]);
    }
    [[unroll]] for (uint s = 1; s < SIDES; s *= 2) best = max(best, subgroupShuffleXor(best, s * FRAGMENT_ROWS));
    float total = 0;
    [[unroll]] for (uint i = 0; i < SIDE_KEYS; i += 8) {
        float w[8];
        [[unroll]] for (uint e = 0; e < 8; e++) {
            w[e] = scores[i + e] > LOWEST ? exp(scores[i + e] - best) : 0;
            total += w[e];
        }
        weights[(firstQuery + own) * WEIGHT_STRIDE + (firstKey + i) / 8] =
            uvec4(packHalf2x16(vec2(w[0], w[1])), packHalf2x16(vec2(w[2], w[3])),
                  packHalf2x16(vec2(w[4], w[5])), packHalf2x16(vec2(w[6], w[7])));
    }
    [[unroll]] for (uint s = 1; s < SIDES; s *= 2) total += subgroupShuffleXor(total, s * FRAGMENT_ROWS);
    const float shrink = exp(seen.best - best);
    seen.total = seen.total * shrink + total;
    seen.best = best;
    return shrink;
}

// Multiplies each row of the sums with the factor of its query. All subgroups pass the same barriers, for
// drivers that take any barrier for one of all.
void scaleSums(float factor, uint patch_, inout FragmentSum sums[ACROSS]) {
    const uint own = gl_SubgroupInvocationID % FRAGMENT_ROWS;
    subgroupOrder();
    [[unroll]] for (uint c = gl_SubgroupInvocationID / FRAGMENT_ROWS; c < FRAGMENT_COLUMNS; c += SIDES) {
        patches[patch_ + c * FRAGMENT_ROWS + own] = factor;
    }
    subgroupOrder();
    if (!subgroupAny(factor != 1.0)) return;
    FragmentSum factors;
    coopMatLoad(factors, patches, patch_, FRAGMENT_ROWS, BY_COLUMNS);
    [[unroll]] for (uint j = 0; j < ACROSS; j++) sums[j] = sums[j] * factors;
}

void addValues(uint firstQuery, inout FragmentSum sums[ACROSS]) {
    [[unroll]] for (uint k = 0; k < KEYS / FRAGMENT_DEPTH; k++) {
        FragmentA a;
        coopMatLoad(a, weights, firstQuery * WEIGHT_STRIDE + k * (FRAGMENT_DEPTH / 8), WEIGHT_STRIDE, BY_ROWS);
        [[unroll]] for (uint j = 0; j < ACROSS; j++) {
            FragmentB b;
            const uint at = (gl_WorkGroupID.z * PART_WIDTH + j * FRAGMENT_COLUMNS) / 8;
            coopMatLoad(b, tile, k * FRAGMENT_DEPTH * STRIDE + at, STRIDE, BY_ROWS);
            sums[j] = coopMatMulAdd(a, b, sums[j]);
        }
    }
}

// `column`: of this workgroup's part of a value. Queries without a row have no result.
void storeResult(uint kvHead, uint firstRow, uint endRow, uint index, uint column, float value) {
    if (index >= TILE_TOKENS * GROUP || firstRow + index / GROUP >= endRow) return;
    const uint head = headOf(kvHead, firstRow, index);
    const uint at = gl_WorkGroupID.z * PART_WIDTH + column;
    if (GATED && !isScrambled(VALUE_TYPE)) {
        value /= 1.0 + exp(-Floats(query).at[(2 * head + 1) * HEAD_WIDTH + at]);
    }
    result.at[head * HEAD_WIDTH + at] = value;
}

// Results, or with SPLITS what this workgroup has of them.
void storeSums(uint kvHead, uint firstRow, uint endRow, uint firstShare, uint firstQuery, uint patch_,
               FragmentSum sums[ACROSS]) {
    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
        subgroupOrder();
        coopMatStore(sums[j], patches, patch_, FRAGMENT_COLUMNS, BY_ROWS);
        subgroupOrder();
        [[dont_unroll]] for (uint e = gl_SubgroupInvocationID; e < FRAGMENT_ROWS * FRAGMENT_COLUMNS; e += LANES) {
            const uint index = firstQuery + e / FRAGMENT_COLUMNS;
            const uint column = j * FRAGMENT_COLUMNS + e % FRAGMENT_COLUMNS;
            const float value = patches[patch_ + e];
            if (SPLITS == 1) storeResult(kvHead, firstRow, endRow, index, column, value);
            else PartFloats(shares).at[(firstShare + index) * SHARE * 4 + column] = value;
        }
    }
}

#include "include/arrival.glsl"

// What a query's sums are to be multiplied with where all of its keys have been seen.
float shareOf(uint kvHead, uint index, Seen seen) {
    if (!SINKS) return 1 / seen.total;
    // The sums are relative to the best score; a larger sink shrinks them to nothing.
    const float sink = sinks.at[kvHead * GROUP + index % GROUP];
    const float share = exp(min(seen.best - sink, 0));
    return share / (seen.total * share + exp(min(sink - seen.best, 0)));
}

// The results of a tile from what its workgroups have of them.
void mergeShares(uint kvHead, uint firstRow, uint endRow, uint firstShare) {
    [[dont_unroll]] for (uint i = gl_LocalInvocationIndex; i < QUERIES * (PART_WIDTH / 4); i += WORKGROUP) {
        const uint index = i / (PART_WIDTH / 4);
        vec4 quads[SPLITS];
        vec2 found[SPLITS];
        Seen all = Seen(LOWEST, 0);
        [[unroll]] for (uint s = 0; s < SPLITS; s++) {
            const uint at = (firstShare + s * QUERIES + index) * SHARE;
            quads[s] = shares.at[at + i % (PART_WIDTH / 4)];
            found[s] = shares.at[at + SHARE - 1].xy;
            all.best = max(all.best, found[s].x);
        }
        vec4 sum = vec4(0);
        [[unroll]] for (uint s = 0; s < SPLITS; s++) {
            const float shrink = exp(found[s].x - all.best);
            all.total += shrink * found[s].y;
            sum += shrink * quads[s];
        }
        sum *= shareOf(kvHead, index, all);
        [[unroll]] for (uint c = 0; c < 4; c++) {
            storeResult(kvHead, firstRow, endRow, index, i % (PART_WIDTH / 4) * 4 + c, sum[c]);
        }
    }
}

void main() {
    const uint kvHead = gl_WorkGroupID.x;
    // Later rows see more keys: they begin first.
    const uint tiles = gl_NumWorkGroups.y / SPLITS;
    const uint firstRow = (tiles - 1 - gl_WorkGroupID.y / SPLITS) * TILE_TOKENS;
    const uint split_ = gl_WorkGroupID.y % SPLITS;
    if (firstRow >= step_.rowCount) return;
    const uint endRow = min(firstRow + TILE_TOKENS, step_.rowCount);
    const uint firstQuery = gl_SubgroupID * FRAGMENT_ROWS;
    const uint patch_ = gl_SubgroupID * PATCH;
    const uint ownIndex = firstQuery + gl_SubgroupInvocationID % FRAGMENT_ROWS;
    const uint ownRow = min(firstRow + ownIndex / GROUP, endRow - 1);
    const uint ownEnd = stepPosition(step_, ownRow) + 1;
    const uint ownStart = ownEnd > window ? ownEnd - window : 0;

    loadQueries(kvHead, firstRow);
    FragmentSum sums[ACROSS];
    [[unroll]] for (uint j = 0; j < ACROSS; j++) sums[j] = FragmentSum(0.0);
    Seen seen = Seen(LOWEST, 0);
    for (uint row = firstRow; row < endRow;) {
        const uint sequence = stepSequence(step_, row);
        uint last = row;
        while (last + 1 < endRow && stepSequence(step_, last + 1) == sequence) last++;
        const bool isMine = ownRow >= row && ownRow <= last;
        const uvec2 visible = isMine ? uvec2(ownStart, ownEnd) : uvec2(0);
        const uint rowEnd = stepPosition(step_, row) + 1;
        const uint end = stepPosition(step_, last) + 1;
        const uint start = rowEnd > window ? rowEnd - window : 0;
        for (uint block = start / KEYS + split_; block * KEYS < end; block += SPLITS) {
            const uint first = block * KEYS;
            const uint place = stepBlock(step_, sequence, block);
            barrier();
            if (KEY_TYPE == F16) loadTile(keyCache, place, kvHead, end - first);
            else decodeTile(KEY_TYPE, Uints(keyCache), place, kvHead, end - first);
            barrier();
            scoreTile(firstQuery, patch_);
            subgroupOrder();
            const float shrink = weigh(firstQuery, patch_, visible, first, seen);
            scaleSums(shrink, patch_, sums);
            barrier();
            if (VALUE_TYPE == F16) loadTile(valueCache, place, kvHead, end - first);
            else decodeTile(VALUE_TYPE, Uints(valueCache), place, kvHead, end - first);
            barrier();
            addValues(firstQuery, sums);
        }
        row = last + 1;
    }
    if (SPLITS == 1) {
        scaleSums(shareOf(kvHead, ownIndex, seen), patch_, sums);
        storeSums(kvHead, firstRow, endRow, 0, firstQuery, patch_, sums);
        return;
    }
    const uint counter = (kvHead * tiles + gl_WorkGroupID.y / SPLITS) * PARTS + gl_WorkGroupID.z;
    const uint firstShare = counter * SPLITS * QUERIES;
    const uint ownShare = firstShare + split_ * QUERIES;
    storeSums(kvHead, firstRow, endRow, ownShare, firstQuery, patch_, sums);
    if (gl_SubgroupInvocationID < FRAGMENT_ROWS) {
        shares.at[(ownShare + ownIndex + 1) * SHARE - 1] = vec4(seen.best, seen.total, 0, 0);
    }
    if (arriveLast(counter, SPLITS)) mergeShares(kvHead, firstRow, endRow, firstShare);
}
