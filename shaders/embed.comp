// Token embeddings: x[row] = scale · table[token of row], dequantized. One workgroup a row.
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
    const uint row = gl_WorkGroupID.x;
    if (row >= step_.rowCount) return;
    uint token = stepToken(step_, row);
    if (token == LATEST_TOKEN) token = latest.at[stepSequence(step_, row)];
    const uint firstBlock = token * (width / BLOCK_VALUES);
    for (uint u = gl_LocalInvocationID.x; u < width / UNIT_VALUES; u += gl_WorkGroupSize.x) {
        const uint block = u / BLOCK_UNITS;
        const uint unit = u % BLOCK_UNITS;
        vec4 values[UNIT_QUADS];
        unpack(table, firstBlock + block, unit, values);
        const uint base = row * width + block * BLOCK_VALUES;
        [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
            x.at[(base + quadColumn(unit, q)) / 4] = scale * values[q];
        }
    }
}
