// Matrix–vector products: y[column, row] = W[row] · x[column] (+ bias[row]) (+ y[column, row]), for
// few columns. LANES invocations share ROWS rows and walk along them side by side; each weight is
// unpacked once for COLUMNS columns.
// @variant TYPE: *
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint COLUMNS = 1;
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Weights w;    // [rows, width]
    Float4s x;    // [columns, width]
    FloatsOut y;  // [columns, rows]
    Floats bias;  // [rows], read with HAS_BIAS
    Step step_;
    uint rows;
    uint width;
    uint flags;
};
#include "include/product_flags.glsl"

void main() {
    const uint columnCount = productColumns(step_);
    const uint firstColumn = gl_WorkGroupID.y * COLUMNS;
    if (firstColumn >= columnCount) return;
    const uint lane = gl_LocalInvocationID.x % LANES;
    const uint cluster = gl_WorkGroupID.x * (WORKGROUP / LANES) + gl_LocalInvocationID.x / LANES;
    const uint firstRow = cluster * ROWS;
    const uint rowBlocks = width / BLOCK_VALUES;

    float sums[ROWS][COLUMNS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) sums[r][c] = 0;
    }
    for (uint u = lane; u < width / UNIT_VALUES; u += LANES) {
        const uint block = u / BLOCK_UNITS;
        const uint unit = u % BLOCK_UNITS;
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            vec4 values[UNIT_QUADS];
            unpack(w, min(firstRow + r, rows - 1) * rowBlocks + block, unit, values);
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                const uint base = min(firstColumn + c, columnCount - 1) * width + block * BLOCK_VALUES;
                [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
                    sums[r][c] += dot(values[q], x.at[(base + quadColumn(unit, q)) / 4]);
                }
            }
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            const float sum = clusterSum(sums[r][c], LANES);
            const uint row = firstRow + r;
            const uint column = firstColumn + c;
            if (lane == 0 && row < rows && column < columnCount) storeProduct(row, column, sum);
        }
    }
}
