// Matrix products for many columns: Y[column, row] = W[row] · X[column] (+ bias) (+ Y), in tiles
// through shared memory, f32 throughout. The plain variant that runs on every device. A tile is
// TILE_ROWS × TILE_COLUMNS results; each invocation computes PATCH_ROWS × PATCH_COLUMNS of them. While a
// slice of the inner dimension is multiplied the next one is on its way into registers.
// @variant TYPE: *
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 128;
layout(constant_id = 1) const uint TILE_ROWS = 64;
layout(constant_id = 2) const uint TILE_COLUMNS = 32;
layout(constant_id = 3) const uint PATCH_ROWS = 4;
layout(constant_id = 4) const uint PATCH_COLUMNS = 4;

// A slice of the inner dimension: whole units, in the order in which units hold their columns.
const uint SLICE_UNITS = max(32 / UNIT_VALUES, 1);
const uint SLICE = SLICE_UNITS * UNIT_VALUES;

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
const uint STRIDE = SLICE / 4 + 1;
shared vec4 tileW[TILE_ROWS * STRIDE];
shared vec4 tileX[TILE_COLUMNS * STRIDE];

const uint TILE_UNITS = TILE_ROWS * SLICE_UNITS;
const uint TILE_QUADS = TILE_COLUMNS * SLICE / 4;
const uint UNITS_EACH = (TILE_UNITS + WORKGROUP - 1) / WORKGROUP;
const uint QUADS_EACH = (TILE_QUADS + WORKGROUP - 1) / WORKGROUP;

// What an invocation takes from memory for a slice.
struct Held {
    WeightUnit units[UNITS_EACH];
    vec4 quads[QUADS_EACH];
};

void fetch(uint firstRow, uint firstColumn, uint columnCount, uint firstUnit, out Held held) {
    const uint unitsInRow = width / UNIT_VALUES;
    // Units behind the last one are multiplied by zeros, so that any will do for them.
    [[unroll]] for (uint n = 0; n < UNITS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        const uint u = min(firstUnit + i % SLICE_UNITS, unitsInRow - 1);
        const uint row = min(firstRow + i / SLICE_UNITS, rows - 1);
        loadWeights(w, row * (width / BLOCK_VALUES) + u / BLOCK_UNITS, u % BLOCK_UNITS, held.units[n]);
    }
    [[unroll]] for (uint n = 0; n < QUADS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        const uint quad = i % (SLICE / 4);
        const uint u = firstUnit + quad / UNIT_QUADS;
        const uint at = (u / BLOCK_UNITS) * BLOCK_VALUES + quadColumn(u % BLOCK_UNITS, quad % UNIT_QUADS);
        const uint source = min(firstColumn + i / (SLICE / 4), columnCount - 1) * width;
        held.quads[n] = u < unitsInRow ? x.at[(source + at) / 4] : vec4(0);
    }
}

void store(Held held) {
    [[unroll]] for (uint n = 0; n < UNITS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        const uint at = (i / SLICE_UNITS) * STRIDE + (i % SLICE_UNITS) * UNIT_QUADS;
        if (TILE_UNITS % WORKGROUP == 0 || i < TILE_UNITS) {
            [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) tileW[at + q] = weightQuad(held.units[n], q);
        }
    }
    [[unroll]] for (uint n = 0; n < QUADS_EACH; n++) {
        const uint i = gl_LocalInvocationIndex + n * WORKGROUP;
        if (TILE_QUADS % WORKGROUP == 0 || i < TILE_QUADS) {
            tileX[i / (SLICE / 4) * STRIDE + i % (SLICE / 4)] = held.quads[n];
        }
    }
}

void main() {
    const uint columnCount = productColumns(step_);
    const uint firstRow = gl_WorkGroupID.x * TILE_ROWS;
    const uint firstColumn = gl_WorkGroupID.y * TILE_COLUMNS;
    if (firstColumn >= columnCount) return;
    // Neighbouring invocations take neighbouring rows, so that stores are contiguous.
    const uint across = TILE_ROWS / PATCH_ROWS;
    const uint patchRow = gl_LocalInvocationIndex % across;
    const uint patchColumn = (gl_LocalInvocationIndex / across) * PATCH_COLUMNS;

    float sums[PATCH_ROWS][PATCH_COLUMNS];
    [[unroll]] for (uint r = 0; r < PATCH_ROWS; r++) {
        [[unroll]] for (uint c = 0; c < PATCH_COLUMNS; c++) sums[r][c] = 0;
    }
    const uint unitsInRow = width / UNIT_VALUES;
    Held held;
    fetch(firstRow, firstColumn, columnCount, 0, held);
    for (uint firstUnit = 0; firstUnit < unitsInRow; firstUnit += SLICE_UNITS) {
        barrier();
        store(held);
        barrier();
        if (firstUnit + SLICE_UNITS < unitsInRow) {
            fetch(firstRow, firstColumn, columnCount, firstUnit + SLICE_UNITS, held);
        }
        for (uint k = 0; k < SLICE / 4; k++) {
            vec4 a[PATCH_ROWS];
            [[unroll]] for (uint r = 0; r < PATCH_ROWS; r++) a[r] = tileW[(patchRow + r * across) * STRIDE + k];
            [[unroll]] for (uint c = 0; c < PATCH_COLUMNS; c++) {
                const vec4 b = tileX[(patchColumn + c) * STRIDE + k];
                [[unroll]] for (uint r = 0; r < PATCH_ROWS; r++) sums[r][c] += dot(a[r], b);
            }
        }
    }
    [[unroll]] for (uint r = 0; r < PATCH_ROWS; r++) {
        [[unroll]] for (uint c = 0; c < PATCH_COLUMNS; c++) {
            const uint row = firstRow + patchRow + r * across;
            const uint column = firstColumn + patchColumn + c;
            if (row < rows && column < columnCount) storeProduct(row, column, sums[r][c]);
        }
    }
}
