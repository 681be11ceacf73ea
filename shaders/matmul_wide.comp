// Matrix products for many columns on matrix units: Y[column, row] = W[row] · X[column] (+ bias) (+ Y).
// A workgroup computes TILE_ROWS × TILE_COLUMNS results, each of its subgroups PART_ROWS × PART_COLUMNS
// of them in registers. Slice by slice of the inner dimension, weights become halves on their way into
// shared memory, each once; while a slice is multiplied the next one is on its way into registers. Sums
// are floats. Activations come as halves (halve.comp).
// @variant TYPE: F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"
#include "include/halves.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 128;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint TILE_ROWS = 128;
layout(constant_id = 3) const uint TILE_COLUMNS = 128;
layout(constant_id = 4) const uint PART_ROWS = 64;
layout(constant_id = 5) const uint PART_COLUMNS = 64;
layout(constant_id = 6) const uint SLICE = 64;  // values of the inner dimension
layout(constant_id = 7) const uint FRAGMENT_ROWS = 16;
layout(constant_id = 8) const uint FRAGMENT_COLUMNS = 16;
layout(constant_id = 9) const uint FRAGMENT_DEPTH = 16;

layout(push_constant, std430) uniform Parameters {
    Weights w;    // [rows, width]
    Uint4s x;     // [columns, width], halves in rows of floats' room
    FloatsOut y;  // [columns, rows]
    Floats bias;  // [rows], read with HAS_BIAS
    Floats rowSwitch; // [columns], read with SWITCHED
    Step step_;
    uint rows;
    uint width;
    uint flags;
};
#include "include/product_flags.glsl"

const uint SUBGROUPS = WORKGROUP / LANES;
#include "include/matrix_units.glsl"

const uint SLICE_UNITS = SLICE / UNIT_VALUES;
const uint SLICE_CHUNKS = SLICE / 8;
// A chunk of padding keeps rows in different banks.
const uint STRIDE = SLICE_CHUNKS + 1;
const uint UNITS_EACH = (TILE_ROWS * SLICE_UNITS + WORKGROUP - 1) / WORKGROUP;
const uint CHUNKS_EACH = (TILE_COLUMNS * SLICE_CHUNKS + WORKGROUP - 1) / WORKGROUP;
const uint DOWN = PART_ROWS / FRAGMENT_ROWS;
const uint ACROSS = PART_COLUMNS / FRAGMENT_COLUMNS;

// Of sums, on their way out, of each subgroup.
const uint STRIP_CHUNKS = PART_ROWS * FRAGMENT_COLUMNS / 4;
const uint TILE_X = TILE_ROWS * STRIDE;
const uint TILE_CHUNKS = (TILE_ROWS + TILE_COLUMNS) * STRIDE;

// Weights, then activations.
shared uvec4 tiles[TILE_CHUNKS > SUBGROUPS * STRIP_CHUNKS ? TILE_CHUNKS : SUBGROUPS * STRIP_CHUNKS];

// What an invocation takes from memory for a slice.
struct Held {
    PackedUnit units[UNITS_EACH];
    uvec4 chunks[CHUNKS_EACH];
};

void fetch(uint firstRow, uint firstColumn, uint lastColumn, uint firstUnit, out Held held) {
    const uint rowUnits = width / UNIT_VALUES;
    [[unroll]] for (uint n = 0; n < UNITS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        const uint u = firstUnit + i % SLICE_UNITS;
        const uint row = min(firstRow + i / SLICE_UNITS, rows - 1);
        held.units[n] = noUnit();
        if (u < rowUnits && i < TILE_ROWS * SLICE_UNITS) {
            loadPacked(w, row * (width / BLOCK_VALUES) + u / BLOCK_UNITS, u % BLOCK_UNITS, held.units[n]);
        }
    }
    [[unroll]] for (uint n = 0; n < CHUNKS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        const uint chunk = i % SLICE_CHUNKS;
        const uint u = firstUnit + chunk / UNIT_CHUNKS;
        const uint at = (u / BLOCK_UNITS) * BLOCK_VALUES + quadColumn(u % BLOCK_UNITS, 2 * (chunk % UNIT_CHUNKS));
        const uint column = min(firstColumn + i / SLICE_CHUNKS, lastColumn);
        const bool isMine = u < rowUnits && i < TILE_COLUMNS * SLICE_CHUNKS;
        held.chunks[n] = isMine ? x.at[(column * width * 2 + at) / 8] : uvec4(0);
    }
}

void store(Held held) {
    [[unroll]] for (uint n = 0; n < UNITS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        if (TILE_ROWS * SLICE_UNITS % WORKGROUP != 0 && i >= TILE_ROWS * SLICE_UNITS) break;
        uvec4 chunks[UNIT_CHUNKS];
        unpackHalves(held.units[n], chunks);
        const uint at = (i / SLICE_UNITS) * STRIDE + (i % SLICE_UNITS) * UNIT_CHUNKS;
        [[unroll]] for (uint c = 0; c < UNIT_CHUNKS; c++) tiles[at + c] = chunks[c];
    }
    [[unroll]] for (uint n = 0; n < CHUNKS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        if (TILE_COLUMNS * SLICE_CHUNKS % WORKGROUP != 0 && i >= TILE_COLUMNS * SLICE_CHUNKS) break;
        tiles[TILE_X + (i / SLICE_CHUNKS) * STRIDE + i % SLICE_CHUNKS] = held.chunks[n];
    }
}

void main() {
    const uint columnCount = productColumns(step_);
    const uint firstColumn = gl_WorkGroupID.x * TILE_COLUMNS;
    const uint firstRow = gl_WorkGroupID.y * TILE_ROWS;
    if (firstColumn >= columnCount) return;
    const uint partsDown = TILE_ROWS / PART_ROWS;
    const uint partRow = (gl_SubgroupID % partsDown) * PART_ROWS;
    const uint partColumn = (gl_SubgroupID / partsDown) * PART_COLUMNS;

    SumFragment sums[DOWN * ACROSS];
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++) sums[i] = SumFragment(0.0);
    Held held;
    fetch(firstRow, firstColumn, columnCount - 1, 0, held);
    for (uint first = 0; first < width; first += SLICE) {
        barrier();
        store(held);
        barrier();
        if (first + SLICE < width) {
            fetch(firstRow, firstColumn, columnCount - 1, (first + SLICE) / UNIT_VALUES, held);
        }
        [[unroll]] for (uint k = 0; k < SLICE / FRAGMENT_DEPTH; k++) {
            const uint at = k * (FRAGMENT_DEPTH / 8);
            WeightFragment weights[DOWN];
            [[unroll]] for (uint i = 0; i < DOWN; i++) {
                coopMatLoad(weights[i], tiles, (partRow + i * FRAGMENT_ROWS) * STRIDE + at, STRIDE, BY_ROWS);
            }
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                InputFragment inputs;
                const uint column = partColumn + j * FRAGMENT_COLUMNS;
                coopMatLoad(inputs, tiles, TILE_X + column * STRIDE + at, STRIDE, BY_COLUMNS);
                [[unroll]] for (uint i = 0; i < DOWN; i++) {
                    sums[j * DOWN + i] = coopMatMulAdd(weights[i], inputs, sums[j * DOWN + i]);
                }
            }
        }
    }
    // Sums leave strip by strip through the memory of the tiles. Which of them is meant must be known when the
    // loops are unrolled: otherwise they would lie in memory all the time.
    const uint strip = gl_SubgroupID * STRIP_CHUNKS;
    barrier();
    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
        [[unroll]] for (uint i = 0; i < DOWN; i++) {
            coopMatStore(sums[j * DOWN + i], tiles, strip + i * (FRAGMENT_ROWS / 4), PART_ROWS / 4, BY_COLUMNS);
        }
        subgroupOrder();
        [[dont_unroll]] for (uint n = 0; n < PART_ROWS * FRAGMENT_COLUMNS / LANES; n++) {
            const uint e = n * LANES + gl_SubgroupInvocationID;
            const uint row = firstRow + partRow + e % PART_ROWS;
            const uint column = firstColumn + partColumn + j * FRAGMENT_COLUMNS + e / PART_ROWS;
            if (row < rows && column < columnCount) {
                const float sum = uintBitsToFloat(tiles[strip + e / 4][e & 3]);
                storeProduct(row, column, sum * inputStep(column, width));
            }
        }
        subgroupOrder();
    }
}
