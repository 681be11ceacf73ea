// The paged KV cache: blocks of BLOCK_TOKENS positions (blockTokens in src/kernels/step.ts), two
// halves in a word.
const uint BLOCK_TOKENS = 32;

// The first word of a position's head.
uint cacheWord(uint block, uint kvHead, uint offset, uint kvHeads, uint headWidth) {
    return ((block * kvHeads + kvHead) * BLOCK_TOKENS + offset) * (headWidth / 2);
}
