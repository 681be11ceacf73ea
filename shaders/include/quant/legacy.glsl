// The 32-value blocks share an order: byte j holds value j in its low and value j + 16 in its high
// nibble, so the quads of a unit are columns 0, 4, 8, 12 from the low nibbles and then 16, 20, 24, 28
// from the high ones.
#define BLOCK_VALUES 32
#define UNIT_VALUES 32

uint quadColumn(uint unit, uint quad) { return 4 * quad; }

// Both halves of a block have the same scale and offset.
void spread(vec2 affine, out vec2 affines[2]) {
    affines[0] = affine;
    affines[1] = affine;
}
