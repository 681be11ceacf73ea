// The second half of the chosen experts of each row, summed by their weights: y[row] = Σ
// weight[row, slot] · (Downₑ · x[row, slot] + bias), added to what is there with ACCUMULATE. A team of
// LANES invocations walks along ROWS rows of all chosen experts as if they were one. Grid: results ×
// rows.
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
#include "include/choices.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint WIDTH = 256;  // of x
layout(constant_id = 4) const bool ACCUMULATE = true;
layout(constant_id = 5) const bool HAS_BIAS = false;
#include "include/reduce.glsl"
#include "include/activations.glsl"

layout(push_constant, std430) uniform Parameters {
    Weights down;   // [experts, rows, WIDTH]
    Float4s x;      // [rows, slots, WIDTH] floats, or codes
    Float2s aside;  // the steps of codes, [rows, slots, WIDTH / 16]
    FloatsOut y;    // [rows, rows of an expert]
    Uints choices;  // see include/choices.glsl
    Floats bias;    // [experts, rows], read with HAS_BIAS
    Step step_;
    uint slots;
    uint rows;      // results
};

const uint TEAMS = WORKGROUP / LANES;
const uint ROW_BLOCKS = WIDTH / BLOCK_VALUES;
const uint UNITS = WIDTH / UNIT_VALUES;

void main() {
    const uint row = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint lane = gl_LocalInvocationID.x % LANES;
    const uint firstRow = (gl_WorkGroupID.x * TEAMS + gl_LocalInvocationID.x / LANES) * ROWS;

    float sums[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) sums[r] = 0;
    for (uint u = lane; u < slots * UNITS; u += LANES) {
        const uint slot = u / UNITS;
        const uint block = (u % UNITS) / BLOCK_UNITS;
        const uint unit = u % BLOCK_UNITS;
        const uint choice = choiceAt(row, slot, slots);
        const uint expert = choices.at[choice];
        const float weight = uintBitsToFloat(choices.at[choice + 1]);
        ActivationUnit a;
        loadPrepared(x, aside, (row * slots + slot) * WIDTH + block * BLOCK_VALUES, unit, a);
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            WeightUnit weights;
            const uint from = expert * rows + min(firstRow + r, rows - 1);
            loadWeights(down, from * ROW_BLOCKS + block, unit, weights);
            sums[r] += weight * weightProduct(weights, a);
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float sum = clusterSum(sums[r], LANES);
        const uint result = firstRow + r;
        if (lane != 0 || result >= rows) continue;
        if (HAS_BIAS) {
            for (uint slot = 0; slot < slots; slot++) {
                const uint choice = choiceAt(row, slot, slots);
                const uint from = choices.at[choice] * rows + result;
                sum += uintBitsToFloat(choices.at[choice + 1]) * bias.at[from];
            }
        }
        if (ACCUMULATE) sum += y.at[row * rows + result];
        y.at[row * rows + result] = sum;
    }
}
