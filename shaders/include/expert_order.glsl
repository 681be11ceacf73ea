// The choices of a step in the order of experts, and tiles of them: what shaders/expert_order.comp leaves.
// Four words, of which the first counts the tiles and the second tells for how many there is room; two
// words a tile, its first place in the order, and expert | number of places << 16; then the choices (row ·
// slots + slot) in order.
const uint ORDER_HEAD = 4;

uint tileAt(uint tile) { return ORDER_HEAD + 2 * tile; }
uint placeAt(uint place, uint tileCapacity) { return ORDER_HEAD + 2 * tileCapacity + place; }
