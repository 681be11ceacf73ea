// How results of experts for a tile of choices leave: in strips, a fragment wide and as high as the tile, through
// the memory of the tiles. The including file defines TILE_ROWS and TILE_COLUMNS, of which the parts next to each
// other have PART_COLUMNS, PAIRED, HAS_BIAS, FRAGMENT_COLUMNS, INNER_CHUNKS, which the inner loop needs of that
// memory, and the parameters order, x, y, bias, upBias, sharing, rows, expertRows, upRow and width.
#include "expert_order.glsl"
#include "gate.glsl"

const uint SIDES = PAIRED ? 2 : 1;
// A chunk of padding keeps columns in different banks.
const uint STRIP_STRIDE = SIDES * TILE_ROWS / 4 + 1;
const uint STRIP = FRAGMENT_COLUMNS * STRIP_STRIDE;
const uint STRIPS = TILE_COLUMNS / PART_COLUMNS;
const uint STRIP_VALUES = FRAGMENT_COLUMNS * TILE_ROWS;

// Slices of operands; in the end strips, of gates and then of ups.
shared uvec4 tiles[INNER_CHUNKS > STRIPS * STRIP ? INNER_CHUNKS : STRIPS * STRIP];
// Of each column of the tile.
shared uint columnChoices[TILE_COLUMNS];
shared float columnSteps[TILE_COLUMNS];

struct Tile {
    uint expert;
    uint columns;
    uint firstRow;
};

// Of this workgroup; looks its columns up.
Tile openTile() {
    const uint at = tileAt(gl_WorkGroupID.x);
    const uint packed_ = order.at[at + 1];
    const Tile tile = Tile(packed_ & 0xFFFF, packed_ >> 16, gl_WorkGroupID.y * TILE_ROWS);
    for (uint c = gl_LocalInvocationIndex; c < tile.columns; c += gl_WorkGroupSize.x) {
        const uint choice = order.at[placeAt(order.at[at] + c, order.at[1])];
        columnChoices[c] = choice;
        columnSteps[c] = inputStep(choice / sharing, width);
    }
    barrier();
    return tile;
}

float sumAt(uint row, uint column) { return uintBitsToFloat(tiles[column * STRIP_STRIDE + row / 4][row & 3]); }

// The n-th of those in the j-th strips of all parts.
void storeResult(uint n, uint j, Tile tile) {
    const uint tileRow = n % TILE_ROWS;
    const uint stripColumn = n / TILE_ROWS;
    const uint part = stripColumn / FRAGMENT_COLUMNS;
    const uint column = part * PART_COLUMNS + j * FRAGMENT_COLUMNS + stripColumn % FRAGMENT_COLUMNS;
    const uint row = tile.firstRow + tileRow;
    if (part >= STRIPS || column >= tile.columns || row >= rows) return;
    const uint from = tile.expert * expertRows + row;
    float value = sumAt(tileRow, stripColumn) * columnSteps[column];
    if (HAS_BIAS) value += bias.at[from];
    if (PAIRED) {
        float upValue = sumAt(TILE_ROWS + tileRow, stripColumn) * columnSteps[column];
        if (HAS_BIAS) upValue += upBias.at[from + upRow];
        value = activated(value, upValue);
    }
    y.at[columnChoices[column] * rows + row] = value;
}

void storeResults(uint j, Tile tile) {
    barrier();
    [[dont_unroll]] for (uint n = 0; n < STRIPS * STRIP_VALUES; n += WORKGROUP) {
        storeResult(n + gl_LocalInvocationIndex, j, tile);
    }
}
