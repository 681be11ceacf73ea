// Linear layers for few rows of activations, where reading the weights once is all that counts, with
// what stands before and behind the product in the same dispatch:
//   y = W · x (+ bias) (+ y)                        one matrix
//   y = act(W0 · x) ⊙ (W1 · x)                      GATED: gate and up of a feed-forward
// With NORM, x is the residual stream of one row and is RMS-normalized (and quantized) into shared
// memory by every workgroup, which is cheaper than a dispatch of its own; with HEAD, x is what a
// recurrent layer recalls, each head is normalized for itself and multiplied by silu(gate). Otherwise x comes prepared:
// floats, or with int8 the codes and steps that the kernel before has written.
//
// LANES invocations (a team) walk along ROWS rows of W side by side, SPLIT teams together; a workgroup
// of several makes PASSES turns. With int8 and QUANTIZE the results of all turns leave as codes and
// steps for the next product.
// @variant TYPE: *
// @variant REDUCTION: subgroup shared
// @variant ACTIVATION: float int8
// @except F32 int8
// @except F16 int8
// @except BF16 int8
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint COLUMNS = 1;
layout(constant_id = 4) const uint PASSES = 1;
layout(constant_id = 5) const uint WIDTH = 256;  // of x
layout(constant_id = 6) const bool NORM = false;
layout(constant_id = 7) const bool GATED = false;
layout(constant_id = 8) const bool QUANTIZE = false;
layout(constant_id = 9) const uint ACTIVATION = 0;  // of the gate
layout(constant_id = 10) const uint SPLIT = 1;  // teams that share a row, where rows are few and long
layout(constant_id = 11) const uint HEAD = 0;  // with NORM: heads of so many values are normed apart, and gated
#include "include/reduce.glsl"
#include "include/activations.glsl"
#include "include/gate.glsl"

layout(push_constant, std430) uniform Parameters {
    Weights w;        // [rows, WIDTH]
    Weights up;       // [rows, WIDTH], with a gate
    Float4s x;        // [columns, WIDTH] floats, or codes
    Float2s aside;    // the steps of prepared codes, [columns, WIDTH / 16]; with NORM the norm's weights
    FloatsOut y;      // [columns, rows] floats, or codes
    Float2sOut ySteps;  // [columns, rows / 16], with QUANTIZE
    Floats bias;      // [rows], read with HAS_BIAS
    Floats rowSwitch; // [columns], read with SWITCHED
    Float4s gate;     // [WIDTH], with HEAD
    Step step_;
    uint rows;
    uint flags;
    float epsilon;
};
#include "include/product_flags.glsl"

const uint TEAMS = WORKGROUP / LANES / SPLIT;
const uint ROW_BLOCKS = WIDTH / BLOCK_VALUES;
const uint UNITS = WIDTH / UNIT_VALUES;
#if defined(PLAIN_VALUES) || defined(ACTIVATION_int8)
const bool PASSING = COLUMNS > ROWS;
#else
const bool PASSING = true;
#endif

#include "include/linear_input.glsl"

const uint WORKGROUP_ROWS = PASSES * TEAMS * ROWS;
#include "include/quantized_results.glsl"

shared vec2 parts[SPLIT > 1 ? TEAMS : 1][SPLIT][ROWS * COLUMNS];

// The sums of all lanes, and of all teams that share the rows.
void gatherSums(uint team, uint part, uint lane, inout float sums[ROWS][COLUMNS],
                inout float upSums[ROWS][COLUMNS]) {
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) {
        const uint r = i / COLUMNS;
        const uint c = i % COLUMNS;
        sums[r][c] = clusterSum(sums[r][c], LANES);
        if (GATED) upSums[r][c] = clusterSum(upSums[r][c], LANES);
        if (SPLIT > 1 && lane == 0) parts[team][part][i] = vec2(sums[r][c], upSums[r][c]);
    }
    if (SPLIT == 1) return;
    barrier();
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) {
        vec2 sum = vec2(0);
        [[unroll]] for (uint s = 0; s < SPLIT; s++) sum += parts[team][s][i];
        sums[i / COLUMNS][i % COLUMNS] = sum.x;
        upSums[i / COLUMNS][i % COLUMNS] = sum.y;
    }
    if (PASSES > 1) barrier();
}

void main() {
    const uint columnCount = productColumns(step_);
    const uint firstColumn = gl_WorkGroupID.y * COLUMNS;
    if (firstColumn >= columnCount) return;
    const uint lane = gl_LocalInvocationID.x % LANES;
    const uint team = gl_LocalInvocationID.x / LANES / SPLIT;
    const uint part = gl_LocalInvocationID.x / LANES % SPLIT;
    prepareInput(firstColumn);

    for (uint pass = 0; pass < PASSES; pass++) {
        const uint turnRow = (gl_WorkGroupID.x * PASSES + pass) * TEAMS * ROWS;
        if (turnRow >= rows) break;
        const uint firstRow = turnRow + team * ROWS;
        float sums[ROWS][COLUMNS];
        float upSums[ROWS][COLUMNS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                sums[r][c] = 0;
                upSums[r][c] = 0;
            }
        }
        for (uint u = lane + part * LANES; u < UNITS; u += LANES * SPLIT) {
            if (PASSING) {
                uint rowBlocks[ROWS];
                [[unroll]] for (uint r = 0; r < ROWS; r++) {
                    rowBlocks[r] = min(firstRow + r, rows - 1) * ROW_BLOCKS;
                }
                addPassingProducts(rowBlocks, u, firstColumn, columnCount - 1, sums, upSums);
                continue;
            }
            ActivationUnit a[COLUMNS];
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                loadActivation(min(firstColumn + c, columnCount - 1), u, a[c]);
            }
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                const uint block = min(firstRow + r, rows - 1) * ROW_BLOCKS + u / BLOCK_UNITS;
                addProducts(w, block, u % BLOCK_UNITS, a, sums[r]);
                if (GATED) addProducts(up, block, u % BLOCK_UNITS, a, upSums[r]);
            }
        }
        gatherSums(team, part, lane, sums, upSums);
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                const float value = GATED ? activated(sums[r][c], upSums[r][c]) : sums[r][c];
                const uint row = firstRow + r;
                const uint column = firstColumn + c;
                if (lane != 0 || part != 0) continue;
                if (QUANTIZE) {
                    results[c * WORKGROUP_ROWS + pass * TEAMS * ROWS + team * ROWS + r] = value;
                } else if (row < rows && column < columnCount) {
                    storeProduct(row, column, value);
                }
            }
        }
    }
    if (!QUANTIZE) return;
    barrier();
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        if (firstColumn + c < columnCount) quantizeResults(firstColumn + c, c * WORKGROUP_ROWS);
    }
}
