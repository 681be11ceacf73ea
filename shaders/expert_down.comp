// The second half of the chosen experts of each row, summed by their weights: y[row] = Σ
// weight[row, slot] · (Downₑ · x[row, slot] + bias), added to what is there with ACCUMULATE. One
// workgroup a result, which walks along the rows of all its experts as if they were one. Grid:
// results × rows.
// @variant TYPE: *
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"
#include "include/choices.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const bool ACCUMULATE = true;
layout(constant_id = 2) const bool HAS_BIAS = false;
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Weights down;   // [experts, rows, width]
    Float4s x;      // [rows, slots, width]
    FloatsOut y;    // [rows, rows of an expert]
    Uints choices;  // see include/choices.glsl
    Floats bias;    // [experts, rows], read with HAS_BIAS
    Step step_;
    uint slots;
    uint rows;      // results
    uint width;
};

void main() {
    const uint row = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint r = gl_WorkGroupID.x;
    const uint rowBlocks = width / BLOCK_VALUES;
    const uint rowUnits = width / UNIT_VALUES;

    float sum = 0;
    for (uint u = gl_LocalInvocationID.x; u < slots * rowUnits; u += WORKGROUP) {
        const uint slot = u / rowUnits;
        const uint block = (u % rowUnits) / BLOCK_UNITS;
        const uint unit = u % BLOCK_UNITS;
        const uint choice = choiceAt(row, slot, slots);
        vec4 values[UNIT_QUADS];
        unpack(down, (choices.at[choice] * rows + r) * rowBlocks + block, unit, values);
        const uint base = (row * slots + slot) * width + block * BLOCK_VALUES;
        float part = 0;
        [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
            part += dot(values[q], x.at[(base + quadColumn(unit, q)) / 4]);
        }
        sum += uintBitsToFloat(choices.at[choice + 1]) * part;
    }
    sum = workgroupSum(sum);
    if (gl_LocalInvocationID.x != 0) return;
    if (HAS_BIAS) {
        for (uint slot = 0; slot < slots; slot++) {
            const uint choice = choiceAt(row, slot, slots);
            sum += uintBitsToFloat(choices.at[choice + 1]) * bias.at[choices.at[choice] * rows + r];
        }
    }
    if (ACCUMULATE) sum += y.at[row * rows + r];
    y.at[row * rows + r] = sum;
}
