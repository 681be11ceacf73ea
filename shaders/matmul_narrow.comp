// Matrix products for a few columns on matrix units: Y[column, row] = W[row] · X[column] (+ bias) (+ Y),
// where reading the weights once is what counts. A workgroup computes ROWS × COLUMNS results; its
// subgroups share the inner dimension, slice by slice in turn, and meet only at the end. Each turns its
// weights into halves in shared memory of its own, and takes activations (halve.comp) as they lie.
// @variant TYPE: F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"
#include "include/halves.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 256;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint ROWS = 32;
layout(constant_id = 3) const uint COLUMNS = 16;
layout(constant_id = 4) const uint SLICE = 64;  // values of the inner dimension
layout(constant_id = 5) const uint FRAGMENT_ROWS = 16;
layout(constant_id = 6) const uint FRAGMENT_COLUMNS = 16;
layout(constant_id = 7) const uint FRAGMENT_DEPTH = 16;

layout(push_constant, std430) uniform Parameters {
    Weights w;    // [rows, width]
    Uint4s x;     // [columns, width], halves in rows of floats' room; whole fragments of columns
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
// A chunk of padding keeps rows in different banks.
const uint STRIDE = SLICE / 8 + 1;
const uint UNITS_EACH = (ROWS * SLICE_UNITS + LANES - 1) / LANES;
const uint DOWN = ROWS / FRAGMENT_ROWS;
const uint ACROSS = COLUMNS / FRAGMENT_COLUMNS;

// Of sums, on their way out, of each subgroup.
const uint STRIP_CHUNKS = ROWS * FRAGMENT_COLUMNS / 4;

shared uvec4 tiles[SUBGROUPS * (ROWS * STRIDE > STRIP_CHUNKS ? ROWS * STRIDE : STRIP_CHUNKS)];

void fetch(uint firstRow, uint firstUnit, out PackedUnit held[UNITS_EACH]) {
    [[unroll]] for (uint n = 0; n < UNITS_EACH; n++) {
        const uint i = gl_SubgroupInvocationID + n * LANES;
        const uint u = firstUnit + i % SLICE_UNITS;
        const uint row = min(firstRow + i / SLICE_UNITS, rows - 1);
        held[n] = noUnit();
        if (u < width / UNIT_VALUES && i < ROWS * SLICE_UNITS) {
            loadPacked(w, row * (width / BLOCK_VALUES) + u / BLOCK_UNITS, u % BLOCK_UNITS, held[n]);
        }
    }
}

void store(PackedUnit held[UNITS_EACH], uint tile) {
    [[unroll]] for (uint n = 0; n < UNITS_EACH; n++) {
        const uint i = gl_SubgroupInvocationID + n * LANES;
        if (ROWS * SLICE_UNITS % LANES != 0 && i >= ROWS * SLICE_UNITS) break;
        uvec4 chunks[UNIT_CHUNKS];
        unpackHalves(held[n], chunks);
        const uint at = tile + (i / SLICE_UNITS) * STRIDE + (i % SLICE_UNITS) * UNIT_CHUNKS;
        [[unroll]] for (uint c = 0; c < UNIT_CHUNKS; c++) tiles[at + c] = chunks[c];
    }
}

// Where values of a slice lie in a row of activations.
uint inputColumn(uint firstUnit, uint value) {
    const uint u = firstUnit + value / UNIT_VALUES;
    return (u / BLOCK_UNITS) * BLOCK_VALUES + quadColumn(u % BLOCK_UNITS, value % UNIT_VALUES / 4);
}

void main() {
    const uint columnCount = productColumns(step_);
    const uint firstColumn = gl_WorkGroupID.x * COLUMNS;
    const uint firstRow = gl_WorkGroupID.y * ROWS;
    if (firstColumn >= columnCount) return;
    const uint tile = gl_SubgroupID * ROWS * STRIDE;

    SumFragment sums[DOWN * ACROSS];
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++) sums[i] = SumFragment(0.0);
    PackedUnit held[UNITS_EACH];
    fetch(firstRow, gl_SubgroupID * SLICE_UNITS, held);
    // All subgroups take the same number of turns, for drivers that take any barrier for one of all.
    for (uint turn = 0; turn < width; turn += SUBGROUPS * SLICE) {
        const uint first = turn + gl_SubgroupID * SLICE;
        const uint firstUnit = first / UNIT_VALUES;
        subgroupOrder();
        store(held, tile);
        subgroupOrder();
        if (turn + SUBGROUPS * SLICE < width) fetch(firstRow, firstUnit + SUBGROUPS * SLICE_UNITS, held);
        [[unroll]] for (uint k = 0; k < SLICE; k += FRAGMENT_DEPTH) {
            if (first + k >= width) break;
            const uint at = inputColumn(firstUnit, k);
            InputFragment inputs[ACROSS];
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                const uint column = firstColumn + j * FRAGMENT_COLUMNS;
                coopMatLoad(inputs[j], x.at, (column * width * 2 + at) / 8, width / 4, BY_COLUMNS);
            }
            [[unroll]] for (uint i = 0; i < DOWN; i++) {
                WeightFragment weights;
                coopMatLoad(weights, tiles, tile + i * FRAGMENT_ROWS * STRIDE + k / 8, STRIDE, BY_ROWS);
                [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                    sums[j * DOWN + i] = coopMatMulAdd(weights, inputs[j], sums[j * DOWN + i]);
                }
            }
        }
    }
    // See matmul_wide.comp for these loops.
    const uint strip = gl_SubgroupID * STRIP_CHUNKS;
    barrier();
    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
        [[unroll]] for (uint i = 0; i < DOWN; i++) {
            coopMatStore(sums[j * DOWN + i], tiles, strip + i * (FRAGMENT_ROWS / 4), ROWS / 4, BY_COLUMNS);
        }
        barrier();
        [[dont_unroll]] for (uint n = 0; n < ROWS * FRAGMENT_COLUMNS; n += WORKGROUP) {
            const uint e = n + gl_LocalInvocationIndex;
            const uint row = firstRow + e % ROWS;
            const uint column = firstColumn + j * FRAGMENT_COLUMNS + e / ROWS;
            if (e < ROWS * FRAGMENT_COLUMNS && row < rows && column < columnCount) {
                float sum = 0;
                [[unroll]] for (uint s = 0; s < SUBGROUPS; s++) {
                    sum += uintBitsToFloat(tiles[s * STRIP_CHUNKS + e / 4][e & 3]);
                }
                storeProduct(row, column, sum * inputStep(column, width));
            }
        }
        barrier();
    }
}
