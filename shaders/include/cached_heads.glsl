// What attention reads from the cache: scores of keys, and quads of values.

void scoreCodes(uint block, uint kvHead, uint offset, inout float scores[GROUP]) {
    const uint tile = cacheTile(KEY_TYPE, block, kvHead, kvHeads, HEAD_WIDTH);
    Uints cache = Uints(keyCache);
    for (uint first = 0; first < chunksOf(HEAD_WIDTH); first += KEY_LOADS) {
        Chunk chunks[KEY_LOADS];
        float scales[KEY_LOADS];
        [[unroll]] for (uint j = 0; j < KEY_LOADS; j++) {
            chunks[j] = loadChunk(KEY_TYPE, cache, tile, offset, HEAD_WIDTH, first + j);
            scales[j] = cacheScale(KEY_TYPE, cache, tile, offset, HEAD_WIDTH, first + j);
        }
        [[unroll]] for (uint j = 0; j < KEY_LOADS; j++) {
            float sums[GROUP];
            [[unroll]] for (uint g = 0; g < GROUP; g++) sums[g] = 0;
            [[unroll]] for (uint i = 0; i < CHUNK_QUADS; i++) {
                const uint quad = (first + j) * CHUNK_QUADS + i;
                if (QUADS % CHUNK_QUADS != 0 && quad >= QUADS) continue;
                const vec4 values = chunkQuad(KEY_TYPE, chunks[j], i);
                [[unroll]] for (uint g = 0; g < GROUP; g++) sums[g] += dot(queries[g][quad], values);
            }
            [[unroll]] for (uint g = 0; g < GROUP; g++) scores[g] += scales[j] * sums[g];
        }
    }
}

void scoreHalves(uint block, uint kvHead, uint offset, inout float scores[GROUP]) {
    const uint base = cacheWord(block, kvHead, offset, kvHeads, HEAD_WIDTH) / 4;
    for (uint i = 0; i < QUADS / 2; i += KEY_LOADS) {
        uvec4 words[KEY_LOADS];
        [[unroll]] for (uint j = 0; j < KEY_LOADS; j++) words[j] = keyCache.at[base + i + j];
        [[unroll]] for (uint j = 0; j < KEY_LOADS; j++) {
            const vec4 low = vec4(unpackHalf2x16(words[j].x), unpackHalf2x16(words[j].y));
            const vec4 high = vec4(unpackHalf2x16(words[j].z), unpackHalf2x16(words[j].w));
            [[unroll]] for (uint g = 0; g < GROUP; g++) {
                scores[g] += dot(queries[g][2 * (i + j)], low) + dot(queries[g][2 * (i + j) + 1], high);
            }
        }
    }
}

void scoreKey(uint blocks[TILE_BLOCKS], uint kvHead, uint key, out float scores[GROUP]) {
    [[unroll]] for (uint g = 0; g < GROUP; g++) scores[g] = 0;
    const uint block = blocks[TILE_BLOCKS == 1 ? 0 : (key % LANES) / BLOCK_TOKENS];
    if (CODED_KEYS) scoreCodes(block, kvHead, key % BLOCK_TOKENS, scores);
    else scoreHalves(block, kvHead, key % BLOCK_TOKENS, scores);
    if (CAPPED) {
        [[unroll]] for (uint g = 0; g < GROUP; g++) scores[g] = softCap(scores[g], cap);
    }
}

// Two words with a quad of a value; of bytes the second is the scale.
uvec2 loadValue(uint block, uint kvHead, uint offset, uint quad) {
    if (!CODED_VALUES) return valueCache.at[cacheWord(block, kvHead, offset, kvHeads, VALUE_WIDTH) / 2 + quad];
    const uint tile = cacheTile(VALUE_TYPE, block, kvHead, kvHeads, VALUE_WIDTH);
    uvec2 words = quadWords(VALUE_TYPE, Uints(valueCache), tile, offset, VALUE_WIDTH, quad);
    if (VALUE_TYPE == Q8_0) {
        const uint chunk = quad / CHUNK_QUADS;
        words.y = floatBitsToUint(cacheScale(VALUE_TYPE, Uints(valueCache), tile, offset, VALUE_WIDTH, chunk));
    }
    return words;
}

vec4 unpackValue(uvec2 words, uint quad) {
    if (!CODED_VALUES) return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    const vec4 values = quadValues(VALUE_TYPE, words, quad % CHUNK_QUADS);
    return VALUE_TYPE == Q8_0 ? values * uintBitsToFloat(words.y) : values;
}

// What the weight of a key has to be multiplied with, for values that have one scale.
float valueScale(uint blocks[TILE_BLOCKS], uint kvHead, uint key) {
    if (!isScrambled(VALUE_TYPE)) return 1;
    const uint block = blocks[TILE_BLOCKS == 1 ? 0 : (key % LANES) / BLOCK_TOKENS];
    const uint tile = cacheTile(VALUE_TYPE, block, kvHead, kvHeads, VALUE_WIDTH);
    return cacheScale(VALUE_TYPE, Uints(valueCache), tile, key % BLOCK_TOKENS, VALUE_WIDTH, 0);
}
