// Matrix products for many columns: Y[column, row] = W[row] · X[column] (+ bias) (+ Y), in tiles
// through shared memory, f32 throughout. The plain variant that runs on every device. A tile is
// TILE_ROWS × TILE_COLUMNS results; each invocation computes PATCH × PATCH of them.
// @variant TYPE: *
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"

const uint TILE_ROWS = 64;
const uint TILE_COLUMNS = 32;
const uint PATCH = 4;
const uint WORKGROUP = (TILE_ROWS / PATCH) * (TILE_COLUMNS / PATCH);
// A slice of the inner dimension: whole units, in the order in which units hold their columns.
const uint SLICE_UNITS = max(32 / UNIT_VALUES, 1);
const uint SLICE = SLICE_UNITS * UNIT_VALUES;

layout(local_size_x = (64 / 4) * (32 / 4)) in;

layout(push_constant, std430) uniform Parameters {
    Weights w;    // [rows, width]
    Float4s x;    // [columns, width]
    FloatsOut y;  // [columns, rows]
    Floats bias;  // [rows], read with HAS_BIAS
    Floats rowSwitch; // [columns], read with SWITCHED
    Step step_;
    uint rows;
    uint width;
    uint flags;
};
#include "include/product_flags.glsl"

// One quad of padding keeps the rows of a column of the tile in different banks.
shared vec4 tileW[TILE_ROWS][SLICE / 4 + 1];
shared vec4 tileX[TILE_COLUMNS][SLICE / 4 + 1];

void loadTiles(uint firstRow, uint firstColumn, uint columnCount, uint firstUnit) {
    const uint unitsInRow = width / UNIT_VALUES;
    for (uint i = gl_LocalInvocationIndex; i < TILE_ROWS * SLICE_UNITS; i += WORKGROUP) {
        const uint row = i / SLICE_UNITS;
        const uint u = firstUnit + i % SLICE_UNITS;
        vec4 values[UNIT_QUADS];
        [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) values[q] = vec4(0);
        if (u < unitsInRow) {
            const uint block = min(firstRow + row, rows - 1) * (width / BLOCK_VALUES) + u / BLOCK_UNITS;
            unpack(w, block, u % BLOCK_UNITS, values);
        }
        [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
            tileW[row][(i % SLICE_UNITS) * UNIT_QUADS + q] = values[q];
        }
    }
    for (uint i = gl_LocalInvocationIndex; i < TILE_COLUMNS * SLICE / 4; i += WORKGROUP) {
        const uint column = i / (SLICE / 4);
        const uint quad = i % (SLICE / 4);
        const uint u = firstUnit + quad / UNIT_QUADS;
        const uint at = (u / BLOCK_UNITS) * BLOCK_VALUES + quadColumn(u % BLOCK_UNITS, quad % UNIT_QUADS);
        const uint source = min(firstColumn + column, columnCount - 1) * width;
        tileX[column][quad] = u < unitsInRow ? x.at[(source + at) / 4] : vec4(0);
    }
}

void main() {
    const uint columnCount = productColumns(step_);
    const uint firstRow = gl_WorkGroupID.x * TILE_ROWS;
    const uint firstColumn = gl_WorkGroupID.y * TILE_COLUMNS;
    if (firstColumn >= columnCount) return;
    // Neighbouring invocations take neighbouring rows, so that stores are contiguous.
    const uint patchRow = gl_LocalInvocationIndex % (TILE_ROWS / PATCH);
    const uint patchColumn = (gl_LocalInvocationIndex / (TILE_ROWS / PATCH)) * PATCH;

    float sums[PATCH][PATCH];
    [[unroll]] for (uint r = 0; r < PATCH; r++) {
        [[unroll]] for (uint c = 0; c < PATCH; c++) sums[r][c] = 0;
    }
    for (uint firstUnit = 0; firstUnit < width / UNIT_VALUES; firstUnit += SLICE_UNITS) {
        loadTiles(firstRow, firstColumn, columnCount, firstUnit);
        barrier();
        for (uint k = 0; k < SLICE / 4; k++) {
            vec4 a[PATCH];
            [[unroll]] for (uint r = 0; r < PATCH; r++) {
                a[r] = tileW[patchRow + r * (TILE_ROWS / PATCH)][k];
            }
            [[unroll]] for (uint c = 0; c < PATCH; c++) {
                const vec4 b = tileX[patchColumn + c][k];
                [[unroll]] for (uint r = 0; r < PATCH; r++) sums[r][c] += dot(a[r], b);
            }
        }
        barrier();
    }
    [[unroll]] for (uint r = 0; r < PATCH; r++) {
        [[unroll]] for (uint c = 0; c < PATCH; c++) {
            const uint row = firstRow + patchRow + r * (TILE_ROWS / PATCH);
            const uint column = firstColumn + patchColumn + c;
            if (row < rows && column < columnCount) storeProduct(row, column, sums[r][c]);
        }
    }
}
