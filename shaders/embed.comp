// Token embeddings: x[row] = scale · table[token of row], dequantized. Grid: units × rows.
// @variant TYPE: *
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Parameters {
    Weights table;  // [vocabulary, width]
    Float4sOut x;   // [rows, width]
    Step step_;
    Uints latest;   // [sequences]: tokens that the sampler chose, for rows that ask for theirs
    uint width;
    float scale;
};

void main() {
    const uint row = gl_WorkGroupID.y;
    // All that can be read before it is known to be needed: each wait for memory counts where a step
    // is one row.
    uint token = stepToken(step_, row);
    const uint sequence = stepSequence(step_, row);
    if (row >= step_.rowCount) return;
    if (token == LATEST_TOKEN) token = latest.at[sequence];
    if (gl_GlobalInvocationID.x >= width / UNIT_VALUES) return;
    const uint block = gl_GlobalInvocationID.x / BLOCK_UNITS;
    const uint unit = gl_GlobalInvocationID.x % BLOCK_UNITS;
    vec4 values[UNIT_QUADS];
    unpack(table, token * (width / BLOCK_VALUES) + block, unit, values);
    const uint base = row * width + block * BLOCK_VALUES;
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
        x.at[(base + quadColumn(unit, q)) / 4] = scale * values[q];
    }
}
