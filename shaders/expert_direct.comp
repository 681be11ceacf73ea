// The products of expert_matmul.comp on matrix units whose fragments are known (src/kernels/fragments.ts):
// weights go from memory into fragments without a detour. Of each of their rows four neighbouring invocations
// hold a unit each, and a quad of it at a time, whatever columns it stands for, as long as activations have the
// same. A subgroup takes ROW_TILES × 16 rows, of gates and of ups, for all columns; slice by slice of the inner
// dimension the rows of activations are gathered in shared memory. Grid: tiles × results.
// @variant TYPE: F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4
#version 460
#include "include/memory.glsl"
#include "include/quant.glsl"
#include "include/halves.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 128;
layout(constant_id = 1) const uint ROW_TILES = 1;
layout(constant_id = 2) const uint TILE_COLUMNS = 32;
layout(constant_id = 3) const bool PAIRED = false;
layout(constant_id = 4) const uint ACTIVATION = 0;  // of the gate
layout(constant_id = 5) const bool HAS_BIAS = false;

layout(push_constant, std430) uniform Parameters {
    Weights w;       // [experts, expertRows, width]
    Weights up;      // as w, and w itself where both are one tensor
    Uint4s x;        // [choices / sharing, width], halves in rows of floats' room
    FloatsOut y;     // [choices, rows]
    Floats bias;     // [experts, expertRows], read with HAS_BIAS
    Floats upBias;   // as bias
    Uints order;     // see include/expert_order.glsl
    uint sharing;    // choices in a row that read the same row of x
    uint rows;       // results of an expert
    uint expertRows; // rows of the tensors from one expert to the next
    uint upRow;      // where an expert's rows of `up` begin
    uint width;
};

const uint LANES = 32;
const uint FRAGMENT_ROWS = 16;
const uint FRAGMENT_COLUMNS = 16;
const uint FRAGMENT_DEPTH = 16;
const uint SUBGROUPS = WORKGROUP / LANES;
#include "include/matrix_units.glsl"
#include "include/quad_fragments.glsl"

const uint TILE_ROWS = SUBGROUPS * ROW_TILES * FRAGMENT_ROWS;
const uint PART_COLUMNS = TILE_COLUMNS;
const uint ACROSS = TILE_COLUMNS / FRAGMENT_COLUMNS;
// Invocations that share a row; short units are taken several at a time.
const uint SHARING = 4;
const uint GROUPS = UNIT_VALUES == 64 ? 1 : UNIT_VALUES == 32 ? 2 : 4;
const uint SLICE_UNITS = SHARING * GROUPS;
const uint SLICE_CHUNKS = SLICE_UNITS * UNIT_CHUNKS;
// With these strides eight invocations, of two columns and four units, read from different banks.
const uint UNIT_STRIDE = UNIT_CHUNKS == 8 ? 10 : UNIT_CHUNKS == 4 ? 6 : 2;
const uint COLUMN_STRIDE = SLICE_UNITS * UNIT_STRIDE + 1;
const uint INNER_CHUNKS = TILE_COLUMNS * COLUMN_STRIDE;
#include "include/expert_results.glsl"

const uint CHUNKS_EACH = (TILE_COLUMNS * SLICE_CHUNKS + WORKGROUP - 1) / WORKGROUP;
const uint SIDE_TILES = SIDES * ROW_TILES;

void fetchInputs(uint columns, uint firstUnit, out uvec4 held[CHUNKS_EACH]) {
    [[unroll]] for (uint n = 0; n < CHUNKS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        const uint column = i / SLICE_CHUNKS;
        const uint u = firstUnit + i % SLICE_CHUNKS / UNIT_CHUNKS;
        const uint at = (u / BLOCK_UNITS) * BLOCK_VALUES + quadColumn(u % BLOCK_UNITS, 2 * (i % UNIT_CHUNKS));
        held[n] = uvec4(0);
        if (column < columns && u < width / UNIT_VALUES) {
            held[n] = x.at[((columnChoices[column] / sharing) * width * 2 + at) / 8];
        }
    }
}

void storeInputs(uvec4 held[CHUNKS_EACH], uint columns) {
    [[unroll]] for (uint n = 0; n < CHUNKS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        const uint column = i / SLICE_CHUNKS;
        const uint unit = i % SLICE_CHUNKS / UNIT_CHUNKS;
        // Whole fragments: the columns behind the last one are zeros.
        if (column < min(columns + FRAGMENT_COLUMNS - 1, TILE_COLUMNS)) {
            tiles[column * COLUMN_STRIDE + unit * UNIT_STRIDE + i % UNIT_CHUNKS] = held[n];
        }
    }
}

void main() {
    if (gl_WorkGroupID.x >= order.at[0]) return;
    const Tile tile = openTile();
    const uint rowUnits = width / UNIT_VALUES;
    const uint place = gl_SubgroupInvocationID / SHARING;
    const uint share = gl_SubgroupInvocationID % SHARING;
    const uint partRow = gl_SubgroupID * ROW_TILES * FRAGMENT_ROWS;

    // The blocks at which the rows begin of which this invocation holds units: of each tile, two.
    uint rowBlocks[2 * SIDE_TILES];
    [[unroll]] for (uint i = 0; i < 2 * SIDE_TILES; i++) {
        const uint row = tile.firstRow + partRow + i / 2 % ROW_TILES * FRAGMENT_ROWS + (i & 1) * 8 + place;
        const uint from = tile.expert * expertRows + min(row, rows - 1) + (i / 2 < ROW_TILES ? 0 : upRow);
        rowBlocks[i] = from * (width / BLOCK_VALUES);
    }
    SumFragment sums[SIDE_TILES * ACROSS];
    [[unroll]] for (uint i = 0; i < SIDE_TILES * ACROSS; i++) sums[i] = SumFragment(0.0);
    uvec4 inputs[CHUNKS_EACH];
    fetchInputs(tile.columns, 0, inputs);
    [[dont_unroll]] for (uint firstUnit = 0; firstUnit < rowUnits; firstUnit += SLICE_UNITS) {
        // Units behind the last one meet zeros, so that any will do for them.
        PackedUnit units[GROUPS * 2 * SIDE_TILES];
        [[unroll]] for (uint n = 0; n < GROUPS; n++) {
            const uint u = min(firstUnit + n * SHARING + share, rowUnits - 1);
            [[unroll]] for (uint i = 0; i < 2 * SIDE_TILES; i++) {
                const uint block = rowBlocks[i] + u / BLOCK_UNITS;
                if (i / 2 < ROW_TILES) loadPacked(w, block, u % BLOCK_UNITS, units[n * 2 * SIDE_TILES + i]);
                else loadPacked(up, block, u % BLOCK_UNITS, units[n * 2 * SIDE_TILES + i]);
            }
        }
        barrier();
        storeInputs(inputs, tile.columns);
        barrier();
        if (firstUnit + SLICE_UNITS < rowUnits) fetchInputs(tile.columns, firstUnit + SLICE_UNITS, inputs);
        [[unroll]] for (uint m = 0; m < GROUPS * UNIT_CHUNKS; m++) {
            const uint n = m / UNIT_CHUNKS;
            const uint c = m % UNIT_CHUNKS;
            uvec4 chunks[2 * SIDE_TILES];
            [[unroll]] for (uint i = 0; i < 2 * SIDE_TILES; i++) {
                chunks[i] = unpackChunk(units[n * 2 * SIDE_TILES + i], c);
            }
            const uint at = place * COLUMN_STRIDE + (n * SHARING + share) * UNIT_STRIDE + c;
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                if (j * FRAGMENT_COLUMNS < tile.columns) {
                    const uvec4 left = tiles[at + j * FRAGMENT_COLUMNS * COLUMN_STRIDE];
                    const uvec4 right = tiles[at + (j * FRAGMENT_COLUMNS + 8) * COLUMN_STRIDE];
                    [[unroll]] for (uint h = 0; h < 2; h++) {
                        const InputFragment columns =
                            inputFragment(h == 0 ? left.xy : left.zw, h == 0 ? right.xy : right.zw);
                        [[unroll]] for (uint i = 0; i < SIDE_TILES; i++) {
                            const uvec4 above = chunks[2 * i];
                            const uvec4 below = chunks[2 * i + 1];
                            const WeightFragment weights =
                                weightFragment(h == 0 ? above.xy : above.zw, h == 0 ? below.xy : below.zw);
                            sums[j * SIDE_TILES + i] = coopMatMulAdd(weights, columns, sums[j * SIDE_TILES + i]);
                        }
                    }
                }
            }
        }
    }
    // See expert_matmul.comp for these loops.
    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
        if (j * FRAGMENT_COLUMNS < tile.columns) {
            barrier();
            [[unroll]] for (uint i = 0; i < SIDE_TILES; i++) {
                const uint at = (i / ROW_TILES * TILE_ROWS + partRow + i % ROW_TILES * FRAGMENT_ROWS) / 4;
                coopMatStore(sums[j * SIDE_TILES + i], tiles, at, STRIP_STRIDE, BY_COLUMNS);
            }
            storeResults(j, tile);
        }
    }
}
