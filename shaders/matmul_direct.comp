// Matrix products for some columns on matrix units whose fragments are known (src/kernels/fragments.ts):
// Y[column, row] = W[row] · X[column] (+ bias) (+ Y). Weights go from memory into fragments without a detour:
// of each row four neighbouring invocations hold a quad each, whatever columns it stands for, as long as
// activations have the same. A subgroup takes ROW_TILES × 16 rows and, in turn with others, GROUP columns
// of W at a time, which are whole units one after the other; all meet at the end. With GATED it takes the
// same rows of two matrices, and f(W · x) · (Up · x) leaves in the tiles that such a product reads.
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
layout(constant_id = 4) const bool GATED = false;
layout(constant_id = 5) const uint ACTIVATION = 0;

layout(push_constant, std430) uniform Parameters {
    Weights w;    // [rows, width]
    Uint4s x;     // see include/tiles.glsl
    FloatsOut y;  // [columns, rows], or tiles with GATED
    Floats bias;  // [rows], read with HAS_BIAS
    Floats rowSwitch; // [columns], read with SWITCHED
    Step step_;
    uint rows;
    uint width;
    uint flags;
    uint capacity;
    Weights up;   // as w, read with GATED
};
#include "include/product_flags.glsl"
#include "include/gate.glsl"
#include "include/tiles.glsl"

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
// Matrices, and their tiles together.
const uint SIDES = GATED ? 2 : 1;
const uint TILES = SIDES * ROW_TILES;
// Rows of which an invocation holds quads.
const uint ROWS_HELD = 2 * TILES;
// Of sums, on their way out, of each column, and of each subgroup.
const uint COLUMN_CHUNKS = TILES * FRAGMENT_ROWS / 4;
const uint STRIP_CHUNKS = COLUMN_CHUNKS * FRAGMENT_COLUMNS;

// Of gated results, whose largest nobody knows before all of them are there: they may come to a million,
// and those below a thousandth are off by half a millionth at most.
const float GATED_STEP = 16;

shared uvec4 strips[SUBGROUPS * STRIP_CHUNKS];

float columnStep(uint column) {
    return uintBitsToFloat(x.at[(capacity * width / 2 + column) / 4][(capacity * width / 2 + column) & 3]);
}

// Sums of four rows of a column, over subgroups.
vec4 sumOfStrips(uint chunk) {
    vec4 sum = vec4(0);
    [[unroll]] for (uint s = 0; s < SUBGROUPS; s++) sum += uintBitsToFloat(strips[s * STRIP_CHUNKS + chunk]);
    return sum;
}

// `chunk`: of the gates; those of the ups follow. `quad`: of rows.
void storeGated(uint chunk, uint quad, uint column) {
    const float scale = columnStep(column);
    const vec4 gates = sumOfStrips(chunk) * scale;
    const vec4 ups = sumOfStrips(chunk + ROWS / 4) * scale;
    vec4 results;
    [[unroll]] for (uint i = 0; i < 4; i++) results[i] = activated(gates[i], ups[i]);
    Uint2sOut(y).at[tiledQuad(column, quad, capacity)] = halfQuad(withinHalves(results / GATED_STEP));
    if (quad == 0) y.at[capacity * (rows / 2) + column] = GATED_STEP;
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

    SumFragment sums[TILES * ACROSS];
    [[unroll]] for (uint i = 0; i < TILES * ACROSS; i++) sums[i] = SumFragment(0.0);
    const uint turn = SUBGROUPS * GROUPS_EACH;
    [[dont_unroll]] for (uint first = gl_SubgroupID * GROUPS_EACH; first < rowGroups; first += turn) {
        PackedUnit held[GROUPS_EACH * ROWS_HELD];
        [[unroll]] for (uint n = 0; n < GROUPS_EACH; n++) {
            const uint unit = min(first + n, rowGroups - 1) * SHARING + share;
            [[unroll]] for (uint i = 0; i < ROWS_HELD; i++) {
                const uint row = min(firstRow + i % (2 * ROW_TILES) * 8 + place, rows - 1);
                const uint block = row * rowBlocks + unit / BLOCK_UNITS;
                if (i < 2 * ROW_TILES) loadPacked(w, block, unit % BLOCK_UNITS, held[n * ROWS_HELD + i]);
                else loadPacked(up, block, unit % BLOCK_UNITS, held[n * ROWS_HELD + i]);
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
                    WeightFragment weights[TILES];
                    [[unroll]] for (uint i = 0; i < TILES; i++) {
                        const uvec4 above = chunks[2 * i * UNIT_CHUNKS + c];
                        const uvec4 below = chunks[(2 * i + 1) * UNIT_CHUNKS + c];
                        weights[i] = weightFragment(uvec2(above[h], above[h + 1]), uvec2(below[h], below[h + 1]));
                    }
                    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                        const InputFragment columns =
                            inputFragment(uvec2(lefts[j][h], lefts[j][h + 1]), uvec2(rights[j][h], rights[j][h + 1]));
                        [[unroll]] for (uint i = 0; i < TILES; i++) {
                            sums[j * TILES + i] = coopMatMulAdd(weights[i], columns, sums[j * TILES + i]);
                        }
                    }
                }
            }
        }
    }
    // See matmul_wide.comp for these loops.
    const uint strip = gl_SubgroupID * STRIP_CHUNKS;
    [[unroll]] for (uint j = 0; j < ACROSS; j++) {
        [[unroll]] for (uint i = 0; i < TILES; i++) {
            coopMatStore(sums[j * TILES + i], strips, strip + i * (FRAGMENT_ROWS / 4), COLUMN_CHUNKS, BY_COLUMNS);
        }
        barrier();
        const uint first = firstColumn + j * FRAGMENT_COLUMNS;
        const uint each = GATED ? ROWS / 4 : ROWS;
        [[dont_unroll]] for (uint n = 0; n < each * FRAGMENT_COLUMNS; n += WORKGROUP) {
            const uint e = n + gl_LocalInvocationIndex;
            const uint column = first + e / each;
            if (e >= each * FRAGMENT_COLUMNS || column >= columnCount) continue;
            if (GATED) {
                const uint quad = firstRow / 4 + e % each;
                if (quad < rows / 4) storeGated(e / each * COLUMN_CHUNKS + e % each, quad, column);
            } else if (firstRow + e % each < rows) {
                float sum = 0;
                [[unroll]] for (uint s = 0; s < SUBGROUPS; s++) {
                    sum += uintBitsToFloat(strips[s * STRIP_CHUNKS + e / 4][e & 3]);
                }
                storeProduct(firstRow + e % each, column, sum * columnStep(column));
            }
        }
        barrier();
    }
}
