// The paged KV cache: blocks of BLOCK_TOKENS positions (blockTokens in src/kernels/step.ts), with a tile
// for each key/value head.
const uint BLOCK_TOKENS = 32;

// Types of keys and of values (see src/kernels/kv-type.ts), by the words of 32 values. Tiles of halves
// have a row a position; those of the others are told in cache_codes.glsl.
const uint F16 = 16;
const uint Q8_0 = 8;
const uint TQ4 = 4;
const uint TQ3 = 3;

// Whether heads are kept as scramble.glsl leaves them.
bool isScrambled(uint type) { return type <= TQ4; }

// The first word of a position's head, of halves.
uint cacheWord(uint block, uint kvHead, uint offset, uint kvHeads, uint headWidth) {
    return ((block * kvHeads + kvHead) * BLOCK_TOKENS + offset) * (headWidth / 2);
}
