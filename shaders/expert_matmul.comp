// Products of experts with the rows that chose them, on matrix units: y[choice] = Wₑ · x[choice] (+ b),
// or with PAIRED y[choice] = f(Gateₑ · x[choice] + b) ⊙ (Upₑ · x[choice] + c), for the expert e of the
// choice. Choices come sorted by expert, in tiles (include/expert_order.glsl), so that a workgroup reads
// each of its weights once for all rows of the tile: it computes TILE_ROWS × TILE_COLUMNS results, each
// of its subgroups PART_ROWS × PART_COLUMNS in registers; fragments without rows are left out. Slice by
// slice of the inner dimension weights become halves on their way into shared memory, and rows
// (halve.comp) are gathered there; while a slice is multiplied the next one is on its way into
// registers. Grid: tiles × results.
// @variant TYPE: F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4
#version 460
#include "include/memory.glsl"
#include "include/quant.glsl"
#include "include/halves.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 128;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint TILE_ROWS = 64;
layout(constant_id = 3) const uint TILE_COLUMNS = 32;
layout(constant_id = 4) const uint PART_ROWS = 16;
layout(constant_id = 5) const uint PART_COLUMNS = 32;
layout(constant_id = 6) const uint SLICE = 64;  // values of the inner dimension
layout(constant_id = 7) const uint FRAGMENT_ROWS = 16;
layout(constant_id = 8) const uint FRAGMENT_COLUMNS = 16;
layout(constant_id = 9) const uint FRAGMENT_DEPTH = 16;
layout(constant_id = 10) const bool PAIRED = false;
layout(constant_id = 11) const uint ACTIVATION = 0;  // of the gate
layout(constant_id = 12) const bool HAS_BIAS = false;

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

const uint SUBGROUPS = WORKGROUP / LANES;
#include "include/matrix_units.glsl"

const uint SLICE_UNITS = SLICE / UNIT_VALUES;
const uint SLICE_CHUNKS = SLICE / 8;
// A chunk of padding keeps rows in different banks.
const uint STRIDE = SLICE_CHUNKS + 1;
// Of weights, gates and then ups, and of activations.
const uint TILE_X = (PAIRED ? 2 : 1) * TILE_ROWS * STRIDE;
const uint INNER_CHUNKS = TILE_X + TILE_COLUMNS * STRIDE;
#include "include/expert_results.glsl"

const uint TILE_UNITS = SIDES * TILE_ROWS * SLICE_UNITS;
const uint TILE_CHUNKS = TILE_COLUMNS * SLICE_CHUNKS;
const uint UNITS_EACH = (TILE_UNITS + WORKGROUP - 1) / WORKGROUP;
const uint CHUNKS_EACH = (TILE_CHUNKS + WORKGROUP - 1) / WORKGROUP;
const uint DOWN = PART_ROWS / FRAGMENT_ROWS;
const uint ACROSS = PART_COLUMNS / FRAGMENT_COLUMNS;

// What an invocation takes from memory for a slice.
struct Held {
    PackedUnit units[UNITS_EACH];
    uvec4 chunks[CHUNKS_EACH];
};

void fetch(Tile tile, uint firstUnit, out Held held) {
    const uint rowUnits = width / UNIT_VALUES;
    [[unroll]] for (uint n = 0; n < UNITS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        const uint u = firstUnit + i % SLICE_UNITS;
        const uint tileRow = i / SLICE_UNITS;
        const bool isUp = PAIRED && tileRow >= TILE_ROWS;
        const uint row = min(tile.firstRow + tileRow % TILE_ROWS, rows - 1);
        const uint from = tile.expert * expertRows + row + (isUp ? upRow : 0);
        Weights source = w;
        if (isUp) source = up;
        held.units[n] = noUnit();
        if (u < rowUnits && i < TILE_UNITS) {
            loadPacked(source, from * (width / BLOCK_VALUES) + u / BLOCK_UNITS, u % BLOCK_UNITS, held.units[n]);
        }
    }
    [[unroll]] for (uint n = 0; n < CHUNKS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        const uint chunk = i % SLICE_CHUNKS;
        const uint column = i / SLICE_CHUNKS;
        const uint u = firstUnit + chunk / UNIT_CHUNKS;
        const uint at = (u / BLOCK_UNITS) * BLOCK_VALUES + quadColumn(u % BLOCK_UNITS, 2 * (chunk % UNIT_CHUNKS));
        held.chunks[n] = uvec4(0);
        if (u < rowUnits && column < tile.columns) {
            held.chunks[n] = x.at[((columnChoices[column] / sharing) * width * 2 + at) / 8];
        }
    }
}

void store(Held held, uint columns) {
    [[unroll]] for (uint n = 0; n < UNITS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        if (TILE_UNITS % WORKGROUP != 0 && i >= TILE_UNITS) break;
        uvec4 chunks[UNIT_CHUNKS];
        unpackHalves(held.units[n], chunks);
        const uint at = (i / SLICE_UNITS) * STRIDE + (i % SLICE_UNITS) * UNIT_CHUNKS;
        [[unroll]] for (uint c = 0; c < UNIT_CHUNKS; c++) tiles[at + c] = chunks[c];
    }
    [[unroll]] for (uint n = 0; n < CHUNKS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        // Whole fragments: the columns behind the last one are zeros.
        if (i / SLICE_CHUNKS < min(columns + FRAGMENT_COLUMNS - 1, TILE_COLUMNS)) {
            tiles[TILE_X + (i / SLICE_CHUNKS) * STRIDE + i % SLICE_CHUNKS] = held.chunks[n];
        }
    }
}

void main() {
    if (gl_WorkGroupID.x >= order.at[0]) return;
    const Tile tile = openTile();
    const uint columns = tile.columns;
    const uint partsDown = TILE_ROWS / PART_ROWS;
    const uint partRow = (gl_SubgroupID % partsDown) * PART_ROWS;
    const uint partColumn = (gl_SubgroupID / partsDown) * PART_COLUMNS;

    SumFragment sums[SIDES * DOWN * ACROSS];
    [[unroll]] for (uint i = 0; i < SIDES * DOWN * ACROSS; i++) sums[i] = SumFragment(0.0);
    Held held;
    fetch(tile, 0, held);
    for (uint first = 0; first < width; first += SLICE) {
        barrier();
        store(held, columns);
        barrier();
        if (first + SLICE < width) fetch(tile, (first + SLICE) / UNIT_VALUES, held);
        [[unroll]] for (uint k = 0; k < SLICE / FRAGMENT_DEPTH; k++) {
            const uint at = k * (FRAGMENT_DEPTH / 8);
            WeightFragment weights[SIDES * DOWN];
            [[unroll]] for (uint i = 0; i < SIDES * DOWN; i++) {
                const uint row = i / DOWN * TILE_ROWS + partRow + i % DOWN * FRAGMENT_ROWS;
                coopMatLoad(weights[i], tiles, row * STRIDE + at, STRIDE, BY_ROWS);
            }
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                const uint column = partColumn + j * FRAGMENT_COLUMNS;
                if (column < columns) {
                    InputFragment inputs;
                    coopMatLoad(inputs, tiles, TILE_X + column * STRIDE + at, STRIDE, BY_COLUMNS);
                    [[unroll]] for (uint i = 0; i < SIDES * DOWN; i++) {
                        sums[j * SIDES * DOWN + i] = coopMatMulAdd(weights[i], inputs, sums[j * SIDES * DOWN + i]);
                    }
                }
            }
        }
    }
    // Which sum is meant must be known when the loops are unrolled: otherwise compilers keep all of them in
    // memory, all the time.
    const uint strip = gl_SubgroupID / partsDown * STRIP + partRow / 4;
    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
        if (j * FRAGMENT_COLUMNS < columns) {
            barrier();
            [[unroll]] for (uint i = 0; i < SIDES * DOWN; i++) {
                const uint at = strip + (i / DOWN * TILE_ROWS + i % DOWN * FRAGMENT_ROWS) / 4;
                coopMatStore(sums[j * SIDES * DOWN + i], tiles, at, STRIP_STRIDE, BY_COLUMNS);
            }
            storeResults(j, tile);
        }
    }
}
