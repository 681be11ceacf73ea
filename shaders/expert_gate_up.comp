// The first half of the chosen experts of each row: y[row, slot] = f(Gateₑ · x[row] + b) ⊙ (Upₑ ·
// x[row] + c) for the expert e of the slot, read on the device; with ALONE, y[row, slot] = Gateₑ ·
// x[row] + b. Laid out like linear.comp: teams of LANES invocations, ROWS results side by side, PASSES
// turns. With QUANTIZE results leave as codes and steps. Grid: results × slots × rows.
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
layout(constant_id = 3) const uint PASSES = 1;
layout(constant_id = 4) const uint WIDTH = 256;  // of x
layout(constant_id = 5) const bool ALONE = false;
layout(constant_id = 6) const bool QUANTIZE = false;
layout(constant_id = 7) const uint ACTIVATION = 0;  // of the gate
layout(constant_id = 8) const bool HAS_BIAS = false;
#include "include/reduce.glsl"
#include "include/activations.glsl"
#include "include/gate.glsl"

layout(push_constant, std430) uniform Parameters {
    Weights gate;    // [experts, expertRows, WIDTH]
    Weights up;      // as gate, and gate itself where both are one tensor
    Float4s x;       // [rows, WIDTH] floats, or codes
    Float2s aside;   // the steps of codes, [rows, WIDTH / 16]
    FloatsOut y;     // [rows, slots, rows of an expert] floats, or codes
    Float2sOut ySteps;  // [rows, slots, rows of an expert / 16], with QUANTIZE
    Uints choices;   // see include/choices.glsl
    Floats gateBias; // [experts, expertRows], read with HAS_BIAS
    Floats upBias;   // as gateBias
    Step step_;
    uint slots;
    uint rows;       // results of an expert
    uint expertRows; // rows of the tensors from one expert to the next
    uint upRow;      // where an expert's rows of `up` begin
};

const uint TEAMS = WORKGROUP / LANES;
const uint ROW_BLOCKS = WIDTH / BLOCK_VALUES;
const uint UNITS = WIDTH / UNIT_VALUES;
const uint COLUMNS = 1;
const uint WORKGROUP_ROWS = PASSES * TEAMS * ROWS;
#include "include/quantized_results.glsl"

void addResults(uint row, uint firstRow, uint expert, uint lane, inout float sums[ROWS], inout float upSums[ROWS]) {
    for (uint u = lane; u < UNITS; u += LANES) {
        const uint unit = u % BLOCK_UNITS;
        ActivationUnit a;
        loadPrepared(x, aside, row * WIDTH + u / BLOCK_UNITS * BLOCK_VALUES, unit, a);
        WeightUnit gates[ROWS];
        WeightUnit ups[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            const uint from = expert * expertRows + min(firstRow + r, rows - 1);
            loadWeights(gate, from * ROW_BLOCKS + u / BLOCK_UNITS, unit, gates[r]);
            if (!ALONE) loadWeights(up, (from + upRow) * ROW_BLOCKS + u / BLOCK_UNITS, unit, ups[r]);
        }
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            sums[r] += weightProduct(gates[r], a);
            if (!ALONE) upSums[r] += weightProduct(ups[r], a);
        }
    }
}

void main() {
    const uint row = gl_WorkGroupID.z;
    if (row >= step_.rowCount) return;
    const uint column = row * slots + gl_WorkGroupID.y;
    const uint expert = choices.at[choiceAt(row, gl_WorkGroupID.y, slots)];
    const uint lane = gl_LocalInvocationID.x % LANES;
    const uint team = gl_LocalInvocationID.x / LANES;
    for (uint pass = 0; pass < PASSES; pass++) {
        const uint turnRow = (gl_WorkGroupID.x * PASSES + pass) * TEAMS * ROWS;
        if (turnRow >= rows) break;
        const uint firstRow = turnRow + team * ROWS;
        float sums[ROWS];
        float upSums[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) sums[r] = upSums[r] = 0;
        addResults(row, firstRow, expert, lane, sums, upSums);
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            float value = clusterSum(sums[r], LANES);
            float upValue = ALONE ? 0 : clusterSum(upSums[r], LANES);
            const uint result = firstRow + r;
            if (lane != 0) continue;
            if (HAS_BIAS) {
                const uint from = expert * expertRows + min(result, rows - 1);
                value += gateBias.at[from];
                if (!ALONE) upValue += upBias.at[from + upRow];
            }
            if (!ALONE) value = activated(value, upValue);
            if (QUANTIZE) results[pass * TEAMS * ROWS + team * ROWS + r] = value;
            else if (result < rows) y.at[column * rows + result] = value;
        }
    }
    if (!QUANTIZE) return;
    barrier();
    quantizeResults(column, 0);
}
