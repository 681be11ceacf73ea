// Keys and values that the cache keeps as codes, in chunks of 32 values of which the last of a head may
// not be full. A tile has the codes of all positions and behind them their scales, which are halves.
//
// Q8_0: a byte a value and a scale a chunk, as in GGUF files. TQ4 and TQ3: 4 or 3 bits a value and a scale
// a head, as in TurboQuant (Zandieh et al. 2025, arXiv 2504.19874): scrambled heads look like normal
// noise, for which the codes stand for fixed levels. The levels are a cubic of the code, which costs less
// than a table; its error is within 2 % (TQ4) and 0.3 % (TQ3) of that of Lloyd and Max's levels. TQ3 has
// two planes: two bits a value of all positions, then the third.
const uint CHUNK_QUADS = 8;

uint chunksOf(uint width) { return (width + 31) / 32; }

// Halves a position.
uint scalesOf(uint type, uint width) { return type == Q8_0 ? chunksOf(width) : 1; }

uint scalesStart(uint type, uint width) { return BLOCK_TOKENS * chunksOf(width) * type; }

// The first word of a tile.
uint cacheTile(uint type, uint block, uint kvHead, uint kvHeads, uint width) {
    const uint words = scalesStart(type, width) + BLOCK_TOKENS / 2 * scalesOf(type, width);
    return (block * kvHeads + kvHead) * words;
}

// Of levels t · (x + y · t²), where t is the code less that of the middle.
vec2 cubicOf(uint type) { return type == TQ4 ? vec2(0.246875, 0.002025) : vec2(0.4716317, 0.011577); }

// From a float between 1 and 2 that has the code in the first bits behind its point: no conversion.
vec4 levelsOf(uint type, uvec4 bits) {
    const float count = type == TQ4 ? 16 : 8;
    const vec4 t = uintBitsToFloat(bits | 0x3F800000u) * count - (1.5 * count - 0.5);
    const vec2 cubic = cubicOf(type);
    return t * (cubic.x + cubic.y * t * t);
}

// Four values without their scale, from the words that have them; `quad` is that of the chunk.
vec4 quadValues(uint type, uvec2 words, uint quad) {
    if (type == Q8_0) return vec4(ivec4(words.x << 24, words.x << 16, words.x << 8, words.x) >> 24);
    if (type == TQ4) {
        const uint q = words.x >> (16 * (quad % 2));
        return levelsOf(type, uvec4(q << 19, q << 15, q << 11, q << 7) & 0x780000u);
    }
    const uint low = words.x >> (8 * (quad % 4));
    const uint high = words.y >> (4 * quad);
    return levelsOf(type, (uvec4(low << 20, low << 18, low << 16, low << 14) & 0x300000u) |
                          (uvec4(high << 22, high << 21, high << 20, high << 19) & 0x400000u));
}

// The words that have a quad of a head.
uvec2 quadWords(uint type, Uints cache, uint tile, uint offset, uint width, uint quad) {
    const uint chunks = chunksOf(width);
    if (type == Q8_0) return uvec2(cache.at[tile + offset * chunks * 8 + quad], 0);
    if (type == TQ4) return uvec2(cache.at[tile + offset * chunks * 4 + quad / 2], 0);
    return uvec2(cache.at[tile + offset * chunks * 2 + quad / 4],
                 cache.at[tile + BLOCK_TOKENS * chunks * 2 + offset * chunks + quad / 8]);
}

float cacheScale(uint type, Uints cache, uint tile, uint offset, uint width, uint chunk) {
    const uint index = offset * scalesOf(type, width) + (type == Q8_0 ? chunk : 0);
    const vec2 pair = unpackHalf2x16(cache.at[tile + scalesStart(type, width) + index / 2]);
    return index % 2 == 0 ? pair.x : pair.y;
}

struct Chunk {
    uvec4 low;
    uvec4 high;
};

Chunk loadChunk(uint type, Uints cache, uint tile, uint offset, uint width, uint chunk) {
    const uint at = offset * chunksOf(width) + chunk;
    if (type == Q8_0) {
        const uint first = tile / 4 + 2 * at;
        return Chunk(Uint4s(cache).at[first], Uint4s(cache).at[first + 1]);
    }
    if (type == TQ4) return Chunk(Uint4s(cache).at[tile / 4 + at], uvec4(0));
    const uvec2 low = Uint2s(cache).at[tile / 2 + at];
    return Chunk(uvec4(low, cache.at[tile + BLOCK_TOKENS * chunksOf(width) * 2 + at], 0), uvec4(0));
}

vec4 chunkQuad(uint type, Chunk chunk, uint quad) {
    if (type == Q8_0) return quadValues(type, uvec2(quad < 4 ? chunk.low[quad % 4] : chunk.high[quad % 4], 0), quad);
    if (type == TQ4) return quadValues(type, uvec2(chunk.low[quad / 2], 0), quad);
    return quadValues(type, uvec2(chunk.low[quad / 4], chunk.low.z), quad);
}
