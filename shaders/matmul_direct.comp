// Matrix products for some columns on matrix units whose fragments are known (src/kernels/fragments.ts):
// Y[column, row] = W[row] · X[column] (+ bias) (+ Y). Weights go from memory into fragments without a detour:
// of each row four neighbouring invocations hold a quad each, whatever columns it stands for, as long as
// activations have the same. A subgroup takes ROW_TILES × 16 rows and, in turn with others, GROUP columns
// of W at a time, which are whole units one after the other; all meet at the end.
// @variant TYPE: F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/quant.glsl"
#include "include/halves.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 256;
layout(constant_id = 1) const uint ROW_TILES = 2;
layout(constant_id = 2) const uint COLUMNS = 16;
layout(constant_id = 3) const uint FRAGMENT_COLUMNS = 16;  // or 8

layout(push_constant, std430) uniform Parameters {
    Weights w;    // [rows, width]
    Uint4s x;     // tiles of halves, [width / 8, capacity, 8], then steps: [capacity]
    FloatsOut y;  // [columns, rows]
    Floats bias;  // [rows], read with HAS_BIAS
    Floats rowSwitch; // [columns], read with SWITCHED
    Step step_;
    uint rows;
    uint width;
    uint flags;
    uint capacity;
};
#include "include/product_flags.glsl"

const uint LANES = 32;
const uint FRAGMENT_ROWS = 16;
const uint FRAGMENT_DEPTH = 16;
#include "include/matrix_units.glsl"
#include "include/quad_fragments.glsl"

const uint SUBGROUPS = WORKGROUP / LANES;
const uint ROWS = ROW_TILES * FRAGMENT_ROWS;
const uint ACROSS = COLUMNS / FRAGMENT_COLUMNS;
// Invocations that share a row, and columns that they take at once.
const uint SHARING = 4;
const uint GROUP = SHARING * UNIT_VALUES;
// Short units are taken several at a time, for their loads to be on their way together.
const uint GROUPS_EACH = UNIT_VALUES == 64 ? 1 : UNIT_VALUES == 32 ? 2 : 4;
// Rows of which an invocation holds quads.
const uint ROWS_HELD = 2 * ROW_TILES;
// Of sums, on their way out, of each subgroup.
const uint STRIP_CHUNKS = ROWS * FRAGMENT_COLUMNS / 4;

shared uvec4 strips[SUBGROUPS * STRIP_CHUNKS];

float columnStep(uint column) {
    return uintBitsToFloat(x.at[(capacity * width / 2 + column) / 4][(capacity * width / 2 + column) & 3]);
}

void main() {
    const uint columnCount = productColumns(step_);
    const uint firstColumn = gl_WorkGroupID.x * COLUMNS;
    const uint firstRow = gl_WorkGroupID.y * ROWS;
    if (firstColumn >= columnCount) return;
    const uint place = gl_SubgroupInvocationID / SHARING;
    const uint share = gl_SubgroupInvocationID % SHARING;
    const uint rowBlocks = width / BLOCK_VALUES;
    const uint rowGroups = width / GROUP;

    SumFragment sums[ROW_TILES * ACROSS];
    [[unroll]] for (uint i = 0; i < ROW_TILES * ACROSS; i++) sums[i] = SumFragment(0.0);
    const uint turn = SUBGROUPS * GROUPS_EACH;
    [[dont_unroll]] for (uint first = gl_SubgroupID * GROUPS_EACH; first < rowGroups; first += turn) {
        PackedUnit held[GROUPS_EACH * ROWS_HELD];
        [[unroll]] for (uint n = 0; n < GROUPS_EACH; n++) {
            const uint unit = min(first + n, rowGroups - 1) * SHARING + share;
            [[unroll]] for (uint i = 0; i < ROWS_HELD; i++) {
                const uint row = min(firstRow + i * 8 + place, rows - 1);
                loadPacked(w, row * rowBlocks + unit / BLOCK_UNITS, unit % BLOCK_UNITS, held[n * ROWS_HELD + i]);
            }
        }
        [[unroll]] for (uint n = 0; n < GROUPS_EACH; n++) {
            if (first + n >= rowGroups) break;
            const uint unit = (first + n) * SHARING + share;
            uvec4 chunks[ROWS_HELD * UNIT_CHUNKS];
            [[unroll]] for (uint i = 0; i < ROWS_HELD; i++) {
                uvec4 own[UNIT_CHUNKS];
                unpackHalves(held[n * ROWS_HELD + i], own);
                [[unroll]] for (uint c = 0; c < UNIT_CHUNKS; c++) chunks[i * UNIT_CHUNKS + c] = own[c];
            }
            [[unroll]] for (uint c = 0; c < UNIT_CHUNKS; c++) {
                const uint at = (unit / BLOCK_UNITS) * BLOCK_VALUES + quadColumn(unit % BLOCK_UNITS, 2 * c);
                const uint chunk = (at / 8) * capacity;
                uvec4 lefts[ACROSS];
                uvec4 rights[ACROSS];
                [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                    const uint column = firstColumn + j * FRAGMENT_COLUMNS + place;
                    lefts[j] = x.at[chunk + min(column, capacity - 1)];
                    if (FRAGMENT_COLUMNS == 16) rights[j] = x.at[chunk + min(column + 8, capacity - 1)];
                }
                [[unroll]] for (uint h = 0; h < 4; h += 2) {
                    WeightFragment weights[ROW_TILES];
                    [[unroll]] for (uint i = 0; i < ROW_TILES; i++) {
                        const uvec4 above = chunks[2 * i * UNIT_CHUNKS + c];
                        const uvec4 below = chunks[(2 * i + 1) * UNIT_CHUNKS + c];
                        weights[i] = weightFragment(uvec2(above[h], above[h + 1]), uvec2(below[h], below[h + 1]));
                    }
                    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                        const InputFragment columns =
                            inputFragment(uvec2(lefts[j][h], lefts[j][h + 1]), uvec2(rights[j][h], rights[j][h + 1]));
                        [[unroll]] for (uint i = 0; i < ROW_TILES; i++) {
                            sums[j * ROW_TILES + i] = coopMatMulAdd(weights[i], columns, sums[j * ROW_TILES + i]);
                        }
                    }
                }
            }
        }
    }
    // See matmul_wide.comp for these loops.
    const uint strip = gl_SubgroupID * STRIP_CHUNKS;
    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
        [[unroll]] for (uint i = 0; i < ROW_TILES; i++) {
            coopMatStore(sums[j * ROW_TILES + i], strips, strip + i * (FRAGMENT_ROWS / 4), ROWS / 4, BY_COLUMNS);
        }
        barrier();
        [[dont_unroll]] for (uint n = 0; n < ROWS * FRAGMENT_COLUMNS; n += WORKGROUP) {
            const uint e = n + gl_LocalInvocationIndex;
            const uint row = firstRow + e % ROWS;
            const uint column = firstColumn + j * FRAGMENT_COLUMNS + e / ROWS;
            if (e < ROWS * FRAGMENT_COLUMNS && row < rows && column < columnCount) {
                float sum = 0;
                [[unroll]] for (uint s = 0; s < SUBGROUPS; s++) {
                    sum += uintBitsToFloat(strips[s * STRIP_CHUNKS + e / 4][e & 3]);
                }
                storeProduct(row, column, sum * columnStep(column));
            }
        }
        barrier();
    }
}
