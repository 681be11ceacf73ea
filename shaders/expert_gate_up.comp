// The first half of the chosen experts of each row: y[row, slot] = f(Gateₑ · x[row] + b) ⊙ (Upₑ ·
// x[row] + c) for the expert e of the slot, read on the device; with ALONE, y[row, slot] = Gateₑ ·
// x[row] + b. Laid out like linear.comp: teams of LANES invocations, ROWS results side by side, PASSES
// turns. With QUANTIZE results leave as codes and steps. Grid: results × slots × rows.
//
// With SORTED a workgroup takes a tile of up to COLUMNS choices of one expert (include/expert_order.glsl)
// and reads its weights once for all of them. Grid: results × tiles.
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
#include "include/expert_order.glsl"

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
layout(constant_id = 9) const uint COLUMNS = 1;
layout(constant_id = 10) const bool SORTED = false;
#include "include/reduce.glsl"
#include "include/activations.glsl"
#include "include/gate.glsl"

layout(push_constant, std430) uniform Parameters {
    Weights gate;    // [experts, expertRows, WIDTH]
    Weights up;      // as gate, and gate itself where both are one tensor
    Float4s x;       // [rows, WIDTH] floats, or codes; with SORTED [choices / slots, WIDTH]
    Float2s aside;   // the steps of codes, [rows, WIDTH / 16]
    FloatsOut y;     // [rows, slots, rows of an expert] floats, or codes
    Float2sOut ySteps;  // [rows, slots, rows of an expert / 16], with QUANTIZE
    Uints choices;   // see include/choices.glsl, with SORTED include/expert_order.glsl
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
const uint WORKGROUP_ROWS = PASSES * TEAMS * ROWS;
#include "include/quantized_results.glsl"

#ifndef ACTIVATION_int8
// Quads become floats one by one, each for all columns.
void addPassing(uint inputs[COLUMNS], uint first, uint unit, WeightUnit gates[ROWS], WeightUnit ups[ROWS],
                inout float sums[ROWS][COLUMNS], inout float upSums[ROWS][COLUMNS]) {
    vec4 products[ROWS * COLUMNS];
    vec4 upProducts[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) products[i] = upProducts[i] = vec4(0);
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
        [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) {
            const vec4 a = x.at[(inputs[i % COLUMNS] * WIDTH + first + quadColumn(unit, q)) / 4];
            products[i] += weightQuad(gates[i / COLUMNS], q) * a;
            if (!ALONE) upProducts[i] += weightQuad(ups[i / COLUMNS], q) * a;
        }
    }
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) {
        const vec4 p = products[i];
        const vec4 upP = upProducts[i];
        sums[i / COLUMNS][i % COLUMNS] += (p.x + p.y) + (p.z + p.w);
        upSums[i / COLUMNS][i % COLUMNS] += (upP.x + upP.y) + (upP.z + upP.w);
    }
}
#endif

// `inputs`: the rows of x of the columns.
void addResults(uint inputs[COLUMNS], uint firstRow, uint expert, uint lane, inout float sums[ROWS][COLUMNS],
                inout float upSums[ROWS][COLUMNS]) {
    for (uint u = lane; u < UNITS; u += LANES) {
        const uint unit = u % BLOCK_UNITS;
        const uint first = u / BLOCK_UNITS * BLOCK_VALUES;
        WeightUnit gates[ROWS];
        WeightUnit ups[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            const uint from = expert * expertRows + min(firstRow + r, rows - 1);
            loadWeights(gate, from * ROW_BLOCKS + u / BLOCK_UNITS, unit, gates[r]);
            if (!ALONE) loadWeights(up, (from + upRow) * ROW_BLOCKS + u / BLOCK_UNITS, unit, ups[r]);
        }
#ifndef ACTIVATION_int8
        if (COLUMNS > 1) {
            addPassing(inputs, first, unit, gates, ups, sums, upSums);
            continue;
        }
#endif
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            ActivationUnit a;
            loadPrepared(x, aside, inputs[c] * WIDTH + first, unit, a);
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                sums[r][c] += weightProduct(gates[r], a);
                if (!ALONE) upSums[r][c] += weightProduct(ups[r], a);
            }
        }
    }
}

void main() {
    uint expert, count;
    uint choiceIds[COLUMNS];
    uint inputs[COLUMNS];
    if (SORTED) {
        if (gl_WorkGroupID.y >= choices.at[0]) return;
        const uint tile = tileAt(gl_WorkGroupID.y);
        expert = choices.at[tile + 1] & 0xFFFF;
        count = choices.at[tile + 1] >> 16;
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            choiceIds[c] = choices.at[placeAt(choices.at[tile] + min(c, count - 1), choices.at[1])];
            inputs[c] = choiceIds[c] / slots;
        }
    } else {
        const uint row = gl_WorkGroupID.z;
        if (row >= step_.rowCount) return;
        expert = choices.at[choiceAt(row, gl_WorkGroupID.y, slots)];
        count = 1;
        choiceIds[0] = row * slots + gl_WorkGroupID.y;
        inputs[0] = row;
    }
    const uint lane = gl_LocalInvocationID.x % LANES;
    const uint team = gl_LocalInvocationID.x / LANES;
    for (uint pass = 0; pass < PASSES; pass++) {
        const uint turnRow = (gl_WorkGroupID.x * PASSES + pass) * TEAMS * ROWS;
        if (turnRow >= rows) break;
        const uint firstRow = turnRow + team * ROWS;
        float sums[ROWS][COLUMNS];
        float upSums[ROWS][COLUMNS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) sums[r][c] = upSums[r][c] = 0;
        }
        addResults(inputs, firstRow, expert, lane, sums, upSums);
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                float value = clusterSum(sums[r][c], LANES);
                float upValue = ALONE ? 0 : clusterSum(upSums[r][c], LANES);
                const uint result = firstRow + r;
                if (lane != 0 || c >= count) continue;
                if (HAS_BIAS) {
                    const uint from = expert * expertRows + min(result, rows - 1);
                    value += gateBias.at[from];
                    if (!ALONE) upValue += upBias.at[from + upRow];
                }
                if (!ALONE) value = activated(value, upValue);
                if (QUANTIZE) results[c * WORKGROUP_ROWS + pass * TEAMS * ROWS + team * ROWS + r] = value;
                else if (result < rows) y.at[choiceIds[c] * rows + result] = value;
            }
        }
    }
    if (!QUANTIZE) return;
    barrier();
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        if (c < count) quantizeResults(choiceIds[c], c * WORKGROUP_ROWS);
    }
}
