// The order of Q2_K, Q3_K and Q6_K: a half of 128 values lies in 32 bytes, four values a byte, 32
// columns apart. A unit is 16 of these bytes: four runs of 16 columns.
#define BLOCK_VALUES 256
#define UNIT_VALUES 64

uint quadColumn(uint unit, uint quad) {
    return 128 * (unit / 2) + 32 * (quad / 4) + 16 * (unit & 1) + 4 * (quad & 3);
}

// The 16-value sub-block of a unit's run: where its scale stands.
uint runScale(uint unit, uint run) { return 8 * (unit / 2) + 2 * run + (unit & 1); }
