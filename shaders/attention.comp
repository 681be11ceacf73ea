// Attention of one query row over the paged cache: softmax(q · Kᵀ) · V with a running maximum
// (Milakov & Gimelshein 2018), for GROUP query heads that share a key/value head, so that keys and
// values are read once. Grid: groups of heads × rows × SPLITS.
//
// A team of LANES invocations takes tiles of LANES keys: each invocation scores one key for all
// heads, then each owns some quads of the values' width for the weighted sum. The teams of a
// workgroup share the keys of its split and merge what they found; long sequences are shared among
// SPLITS workgroups, of which the last to finish merges for all. Scores may be capped softly, and a
// head may have a sink: a score that takes its share of the weights and has no value (Xiao et al.
// 2023, arXiv 2309.17453, as gpt-oss learns it). The result may be gated, and leaves as floats, or as the
// codes or the tiles of halves that the product behind it reads.
//
// In steps of one row, queries may come as their product left them: every workgroup then norms and
// rotates them for itself. With STORES, the one that has the row's own position also rotates its key,
// stores it with the value, and takes both from shared memory.
//
// Keys and values may be codes (include/cache_codes.glsl). Where these are of scrambled heads, so are the
// queries, which are scrambled here where they are rotated here; results are unscrambled at the end.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/cache.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint HEAD_WIDTH = 128;
layout(constant_id = 3) const uint VALUE_WIDTH = 128;
layout(constant_id = 4) const uint GROUP = 4;
layout(constant_id = 5) const uint SPLITS = 1;
layout(constant_id = 6) const bool CAPPED = false;
layout(constant_id = 7) const bool SINKS = false;
layout(constant_id = 8) const bool GATED = false;
layout(constant_id = 9) const uint RESULT = 0;
// Narrow heads leave invocations over: then so many keys are summed side by side.
layout(constant_id = 10) const uint SIDES = 1;
// Loads that are on their way at the same time: of 16 bytes of a key, and of values.
layout(constant_id = 11) const uint KEY_LOADS = 8;
layout(constant_id = 12) const uint KEYS_AT_ONCE = 8;
layout(constant_id = 13) const bool STORES = false;  // else the layer reads the cache of another
layout(constant_id = 14) const bool NEIGHBOURS = true;
layout(constant_id = 15) const bool NORM_QUERY = false;
layout(constant_id = 16) const bool NORM_KEY = false;
layout(constant_id = 17) const bool NORM_VALUE = false;
layout(constant_id = 18) const uint ROTARY = 128;
layout(constant_id = 19) const float MAGNITUDE = 1;
layout(constant_id = 20) const float EPSILON = 0;
layout(constant_id = 21) const uint SHARE = 1;  // workgroups that share a key/value head
layout(constant_id = 22) const uint KEY_TYPE = F16;
layout(constant_id = 23) const uint VALUE_TYPE = F16;
layout(constant_id = 24) const bool SCRAMBLE_QUERY = false;
#include "include/reduce.glsl"
#include "include/codes.glsl"
#include "include/tiles.glsl"
#include "include/soft_cap.glsl"

float headSum(float value) { return clusterSum(value, LANES); }
#include "include/rope.glsl"
#include "include/cache_codes.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) coherent buffer Parts { vec4 at[]; };

layout(push_constant, std430) uniform Parameters {
    Float4s query;       // [rows, heads, HEAD_WIDTH], or of each head [query | gate] with GATED
    Uint4s keyCache;     // see cache.glsl
    Uint2s valueCache;
    Float4sOut result;   // [rows, heads, VALUE_WIDTH] floats or CODES, or TILES of these rows
    Float2sOut steps;    // [rows, heads, VALUE_WIDTH / 16] of CODES, [rows] single ones of TILES
    Parts parts;         // [rows, heads, SPLITS, PART]: (maximum, total), weighted sum
    Counters counters;   // [rows, groups of heads], zero between dispatches
    Step step_;
    Floats sinks;        // [heads], with SINKS
    Float4s key;         // [rows, key/value heads, HEAD_WIDTH], with STORES
    Float4s value;       // [rows, key/value heads, VALUE_WIDTH], with STORES
    Frequencies frequencies;  // [ROTARY / 2]
    Float4s queryNorm;   // [HEAD_WIDTH], with NORM_QUERY
    Float4s keyNorm;     // [HEAD_WIDTH], with NORM_KEY
    uint kvHeads;
    uint window;         // keys that a query sees, itself included
    float scale;
    float cap;           // of the scores, with CAPPED
};

const uint TEAMS = WORKGROUP / LANES;
const uint QUADS = HEAD_WIDTH / 4;
const uint VALUE_QUADS = VALUE_WIDTH / 4;
const uint LANE_QUADS = (VALUE_QUADS + LANES - 1) / LANES;
const uint TILE_BLOCKS = (LANES + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
const uint PART = VALUE_QUADS + 1;

// Values of RESULT, beside floats.
const uint CODES = 1;
const uint TILES = 2;

// A finite floor: the difference of two infinities would be no number.
const float LOWEST = -1e30;
// Fewer keys are not worth a workgroup of their own.
const uint SPLIT_KEYS_MIN = TEAMS * LANES < 64 ? 64 : TEAMS * LANES;

const bool CODED_KEYS = KEY_TYPE != F16;
const bool CODED_VALUES = VALUE_TYPE != F16;
const bool CODED = KEY_TYPE + VALUE_TYPE < 2 * F16;
const uint OWN_KEY = GROUP;
const uint OWN_VALUE = GROUP + 1;
const uint HEAD_QUADS_MAX = QUADS > VALUE_QUADS ? QUADS : VALUE_QUADS;

// And the row's own key, and its value if that is coded.
shared vec4 queries[GROUP + uint(STORES) + uint(CODED)][HEAD_QUADS_MAX];
shared float weights[TEAMS][GROUP][LANES];
shared float teamBest[GROUP][TEAMS];
shared float teamTotal[GROUP][TEAMS];
shared vec4 teamSums[GROUP][TEAMS][VALUE_QUADS];

// Orders what the invocations of a team wrote to shared memory before what they read.
void teamBarrier() {
#ifdef REDUCTION_subgroup
    subgroupMemoryBarrierShared();
    subgroupBarrier();
#else
    barrier();
#endif
}

const uint HEAD_LANES = LANES;
void headOrder() { teamBarrier(); }
#define HEADS queries
#include "include/scramble.glsl"
const uint DESKS = 2;
const uint HEAD_ROOM = CODED ? HEAD_QUADS_MAX : CHUNK_QUADS;
#include "include/cache_encode.glsl"

struct Found {
    float best;
    float total;
    vec4 sums[LANE_QUADS];
};

uint quadOf(uint lane, uint i) { return SIDES > 1 ? lane % VALUE_QUADS : lane + i * LANES; }

#include "include/cached_heads.glsl"

// Adds weight · value of the keys of a tile. Keys outside the range have no weight; those behind its
// end are not in the cache either, and what lies there may be no number.
void addValues(uint blocks[TILE_BLOCKS], uint kvHead, uint first, uint end, uint team, uint lane,
               inout Found found[GROUP]) {
    const uint side = SIDES > 1 ? lane / VALUE_QUADS : 0;
    const uint count = first < end ? min(LANES, end - first) : 0;
    for (uint k = 0; k < count; k += KEYS_AT_ONCE * SIDES) {
        [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
            const uint quad = quadOf(lane, i);
            if (quad >= VALUE_QUADS) continue;
            uvec2 words[KEYS_AT_ONCE];
            [[unroll]] for (uint j = 0; j < KEYS_AT_ONCE; j++) {
                const uint at = min(k + j * SIDES + side, count - 1);
                const uint block = blocks[TILE_BLOCKS == 1 ? 0 : at / BLOCK_TOKENS];
                const uint offset = (first + at) % BLOCK_TOKENS;
                words[j] = loadValue(block, kvHead, offset, quad);
            }
            [[unroll]] for (uint j = 0; j < KEYS_AT_ONCE; j++) {
                const uint at = k + j * SIDES + side;
                if (at >= count) continue;
                const vec4 value = unpackValue(words[j], quad);
                [[unroll]] for (uint g = 0; g < GROUP; g++) {
                    found[g].sums[i] += weights[team][g][at] * value;
                }
            }
        }
    }
}

// Everything that a team finds in its tiles of the range.
void search(uint sequence, uint kvHead, uvec2 range, uint team, uint lane, inout Found found[GROUP]) {
    // All teams take the same number of tiles, for drivers that take any barrier for one of all.
    for (uint tile = range.x - range.x % LANES; tile < range.y; tile += TEAMS * LANES) {
        const uint first = tile + team * LANES;
        const uint key = first + lane;
        uint blocks[TILE_BLOCKS];
        [[unroll]] for (uint i = 0; i < TILE_BLOCKS; i++) {
            const uint block = min(first / BLOCK_TOKENS + i, (range.y - 1) / BLOCK_TOKENS);
            blocks[i] = stepBlock(step_, sequence, block);
        }
        float scores[GROUP];
        const float scaleOfValue = valueScale(blocks, kvHead, min(key, range.y - 1));
        scoreKey(blocks, kvHead, min(key, range.y - 1), scores);
        [[unroll]] for (uint g = 0; g < GROUP; g++) {
            const bool visible = key >= range.x && key < range.y;
            const float next = max(found[g].best, clusterMax(visible ? scores[g] : LOWEST, LANES));
            const float weight = visible ? exp(scores[g] - next) : 0;
            const float shrink = exp(found[g].best - next);
            weights[team][g][lane] = weight * scaleOfValue;
            found[g].total = found[g].total * shrink + clusterSum(weight, LANES);
            found[g].best = next;
            [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) found[g].sums[i] *= shrink;
        }
        teamBarrier();
        addValues(blocks, kvHead, first, range.y, team, lane, found);
        teamBarrier();
    }
    if (SIDES > 1) {
        [[unroll]] for (uint g = 0; g < GROUP; g++) {
            [[unroll]] for (uint c = 0; c < 4; c++) {
                found[g].sums[0][c] = strideSum(found[g].sums[0][c], VALUE_QUADS, LANES);
            }
        }
    }
}

// What the teams of this workgroup found for one head, together.
void mergeTeams(uint g, uint lane, inout Found all) {
    all.best = teamBest[g][0];
    for (uint t = 1; t < TEAMS; t++) all.best = max(all.best, teamBest[g][t]);
    all.total = 0;
    [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) all.sums[i] = vec4(0);
    for (uint t = 0; t < TEAMS; t++) {
        const float shrink = exp(teamBest[g][t] - all.best);
        all.total += shrink * teamTotal[g][t];
        [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
            const uint quad = quadOf(lane, i);
            if (quad < VALUE_QUADS) all.sums[i] += shrink * teamSums[g][t][quad];
        }
    }
}

// The same for the workgroups that share a head's keys; no more than there are lanes. Each lane looks
// at one part for the weights, then all go through the sums with several loads on their way.
void mergeParts(uint head, uint count, uint team, uint lane, inout Found all) {
    const uint first = head * SPLITS * PART;
    const vec2 mine = lane < count ? parts.at[first + lane * PART].xy : vec2(LOWEST, 0);
    all.best = clusterMax(mine.x, LANES);
    const float shrink = exp(mine.x - all.best);
    all.total = clusterSum(shrink * mine.y, LANES);
    weights[team][0][lane] = shrink;
    teamBarrier();
    [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
        const uint quad = min(quadOf(lane, i), VALUE_QUADS - 1);
        all.sums[i] = vec4(0);
        for (uint s = 0; s < count; s += KEYS_AT_ONCE) {
            vec4 sums[KEYS_AT_ONCE];
            [[unroll]] for (uint j = 0; j < KEYS_AT_ONCE; j++) {
                sums[j] = parts.at[first + min(s + j, count - 1) * PART + 1 + quad];
            }
            [[unroll]] for (uint j = 0; j < KEYS_AT_ONCE; j++) {
                if (s + j < count) all.sums[i] += weights[team][0][s + j] * sums[j];
            }
        }
    }
    teamBarrier();
}

void storePart(uint head, uint split_, Found found, uint lane) {
    const uint at = (head * SPLITS + split_) * PART;
    if (lane == 0) parts.at[at] = vec4(found.best, found.total, 0, 0);
    [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
        const uint quad = quadOf(lane, i);
        if (quad >= VALUE_QUADS || (SIDES > 1 && lane >= VALUE_QUADS)) continue;
        parts.at[at + 1 + quad] = found.sums[i];
    }
}

// The queries are not needed any more: their room is that of the head `slot`.
void unscramble(uint slot, inout vec4 values[LANE_QUADS], uint lane, bool mine) {
    [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
        const uint quad = quadOf(lane, i);
        if (mine && quad < VALUE_QUADS) queries[slot][quad] = values[i];
    }
    unscrambleHead(slot, VALUE_QUADS, lane, mine);
    [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
        const uint quad = min(quadOf(lane, i), VALUE_QUADS - 1);
        values[i] = queries[slot][quad] * signsOf(quad);
    }
}

// All teams come here together; only of those with a head, `mine`, the result is stored.
void storeResult(uint row, uint headOfRow, Found found, uint lane, bool mine) {
    const uint head = row * kvHeads * SHARE * GROUP + headOfRow;
    float shrink = 1;
    if (SINKS) {
        // The sums are relative to the best score; a larger sink shrinks them to nothing.
        const float sink = sinks.at[headOfRow];
        shrink = exp(min(found.best - sink, 0));
        found.total = found.total * shrink + exp(min(sink - found.best, 0));
    }
    vec4 values[LANE_QUADS];
    [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) values[i] = found.sums[i] * (shrink / found.total);
    if (isScrambled(VALUE_TYPE)) unscramble(headOfRow % GROUP, values, lane, mine);
    [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
        const uint quad = quadOf(lane, i);
        vec4 value = values[i];
        if (GATED && quad < VALUE_QUADS) {
            value /= 1.0 + exp(-query.at[(2 * head + 1) * QUADS + quad]);
        }
        const bool stores = mine && quad < VALUE_QUADS && (SIDES == 1 || lane < VALUE_QUADS);
        if (RESULT == CODES) {
            const QuadCodes codes = quantizeQuad(stores ? value : vec4(0));
            if (!stores) continue;
            UintsOut(result).at[head * VALUE_QUADS + quad] = codes.codes;
            if (quad % 4 == 0) steps.at[head * (VALUE_QUADS / 4) + quad / 4] = codes.run;
        } else if (RESULT == TILES && stores) {
            // Averages of halves need no other step than theirs; bytes with a scale may be more than that.
            const uint at = tiledQuad(row, headOfRow * VALUE_QUADS + quad, gl_NumWorkGroups.y);
            Uint2sOut(result).at[at] = halfQuad(withinHalves(value));
            if (headOfRow == 0 && quad == 0) FloatsOut(steps).at[row] = 1;
        } else if (stores) {
            result.at[head * VALUE_QUADS + quad] = value;
        }
    }
}

#include "include/arrival.glsl"
#include "include/own_row.glsl"

void main() {
    const uint group = gl_WorkGroupID.x;
    const uint kvHead = group / SHARE;
    const uint row = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint position = stepPosition(step_, row);
    const uint end = position + 1;
    const uint start = end > window ? end - window : 0;
    // Splits and tiles start at multiples of LANES, so that a tile lies in as few blocks as it can.
    const uint aligned = start - start % LANES;
    const uint least = max((end - aligned + SPLITS - 1) / SPLITS, SPLIT_KEYS_MIN);
    const uint share = SPLITS == 1 ? end - aligned : (least + LANES - 1) / LANES * LANES;
    const uint count = (end - aligned + share - 1) / share;
    const uint split_ = gl_WorkGroupID.z;
    if (split_ >= count) return;
    // The last split has the row's own key, which with STORES is not taken from the cache.
    const bool isLast = split_ + 1 == count;
    const uvec2 range = uvec2(max(start, aligned + split_ * share),
                              min(aligned + (split_ + 1) * share, STORES ? position : end));
    const uint lane = gl_LocalInvocationID.x % LANES;
    const uint team = gl_LocalInvocationID.x / LANES;

    const uint counter = row * kvHeads * SHARE + group;
    const uint firstHead = counter * GROUP;
    const bool own = STORES && isLast && team == TEAMS - 1;
    prepareHeads(row, kvHead, firstHead, position, team, lane, own);
    if (SCRAMBLE_QUERY) scrambleQueries(team, lane);
    if (CODED && STORES && isLast) encodeOwn(row, kvHead, position, team, lane);
    barrier();
    Found found[GROUP];
    beginWith(own, lane, found);
    search(stepSequence(step_, row), kvHead, range, team, lane, found);

    // Through shared memory, also where there is nothing to merge: what follows is then code for one
    // head. Code that is run once costs most to fetch.
    [[unroll]] for (uint g = 0; g < GROUP; g++) {
        if (lane == 0) {
            teamBest[g][team] = found[g].best;
            teamTotal[g][team] = found[g].total;
        }
        [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
            const uint quad = quadOf(lane, i);
            if (quad < VALUE_QUADS) teamSums[g][team][quad] = found[g].sums[i];
        }
    }
    barrier();
    // To unscramble, all teams take the same number of turns: see search.
    const uint turnsEnd = isScrambled(VALUE_TYPE) ? GROUP + team : GROUP;
    [[dont_unroll]] for (uint turn = team; turn < turnsEnd; turn += TEAMS) {
        const uint g = min(turn, GROUP - 1);
        Found all;
        mergeTeams(g, lane, all);
        if (count == 1) storeResult(row, group * GROUP + g, all, lane, turn < GROUP);
        else if (turn < GROUP) storePart(firstHead + g, split_, all, lane);
    }
    if (SPLITS == 1 || count == 1 || !arriveLast(counter, count)) return;
    [[dont_unroll]] for (uint first = 0; first < GROUP; first += TEAMS) {
        const uint g = min(first + team, GROUP - 1);
        Found all;
        mergeParts(firstHead + g, count, team, lane, all);
        storeResult(row, group * GROUP + g, all, lane, first + team < GROUP);
    }
}
