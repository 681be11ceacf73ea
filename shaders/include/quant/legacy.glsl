// The 32-value blocks share an order: byte j holds value j in its low and value j + 16 in its high
// nibble, so the quads of a unit are columns 0, 4, 8, 12 from the low nibbles and then 16, 20, 24,
// 28 from the high ones.
#define BLOCK_VALUES 32
#define UNIT_VALUES 32

uint quadColumn(uint unit, uint quad) { return 4 * quad; }

uint lowNibbles(uint word) { return word & 0x0F0F0F0F; }
uint highNibbles(uint word) { return (word >> 4) & 0x0F0F0F0F; }
