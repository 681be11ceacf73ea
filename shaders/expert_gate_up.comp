// The first half of the chosen experts of each row: y[row, slot] = f(Gateₑ · x[row] + b) ⊙ (Upₑ ·
// x[row] + c) for the expert e of the slot, read on the device; with ALONE, y[row, slot] = Gateₑ ·
// x[row] + b. LANES invocations share one result. Grid: results × slots × rows.
// @variant TYPE: *
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"
#include "include/choices.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const bool ALONE = false;
layout(constant_id = 3) const uint ACTIVATION = 0;
layout(constant_id = 4) const bool HAS_BIAS = false;
#include "include/gate.glsl"
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Weights gate;    // [experts, expertRows, width]
    Weights up;      // as gate, and gate itself where both are one tensor
    Float4s x;       // [rows, width]
    FloatsOut y;     // [rows, slots, rows of an expert]
    Uints choices;   // see include/choices.glsl
    Floats gateBias; // [experts, expertRows], read with HAS_BIAS
    Floats upBias;   // as gateBias
    Step step_;
    uint slots;
    uint rows;       // results of an expert
    uint width;
    uint expertRows; // rows of the tensors from one expert to the next
    uint upRow;      // where an expert's rows of `up` begin
};

void main() {
    const uint row = gl_WorkGroupID.z;
    if (row >= step_.rowCount) return;
    const uint slot = gl_WorkGroupID.y;
    const uint expert = choices.at[choiceAt(row, slot, slots)];
    const uint lane = gl_LocalInvocationID.x % LANES;
    const uint r = gl_WorkGroupID.x * (WORKGROUP / LANES) + gl_LocalInvocationID.x / LANES;
    const uint rowBlocks = width / BLOCK_VALUES;
    const uint gateRow = expert * expertRows + min(r, rows - 1);
    const uint gateBlock = gateRow * rowBlocks;
    const uint upBlock = gateBlock + upRow * rowBlocks;

    float gateSum = 0;
    float upSum = 0;
    for (uint u = lane; u < width / UNIT_VALUES; u += LANES) {
        const uint block = u / BLOCK_UNITS;
        const uint unit = u % BLOCK_UNITS;
        const uint base = row * width + block * BLOCK_VALUES;
        WeightUnit gateWeights;
        WeightUnit upWeights;
        loadWeights(gate, gateBlock + block, unit, gateWeights);
        if (!ALONE) loadWeights(up, upBlock + block, unit, upWeights);
        [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
            const vec4 a = x.at[(base + quadColumn(unit, q)) / 4];
            gateSum += dot(weightQuad(gateWeights, q), a);
            if (!ALONE) upSum += dot(weightQuad(upWeights, q), a);
        }
    }
    gateSum = clusterSum(gateSum, LANES);
    if (!ALONE) upSum = clusterSum(upSum, LANES);
    if (lane != 0 || r >= rows) return;
    if (HAS_BIAS) gateSum += gateBias.at[gateRow];
    if (HAS_BIAS && !ALONE) upSum += upBias.at[gateRow + upRow];
    y.at[(row * slots + slot) * rows + r] = ALONE ? gateSum : activated(gateSum, upSum);
}
