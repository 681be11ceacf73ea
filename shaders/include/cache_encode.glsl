// Heads into the cache as codes: see cache_codes.glsl. The including file defines what scramble.glsl asks
// for, headSum(float), HEAD_ROOM, the quads of the widest head, and DESKS, how many are encoded at a time.
shared uint quadCodes[DESKS][HEAD_ROOM];
shared uint scaleBits[DESKS][HEAD_ROOM / CHUNK_QUADS + 1];  // of halves

// The codes of the levels that are nearest, by halving: levels n - 1 and n meet at a cubic, too.
uvec4 nearestCodes(uint type, vec4 v) {
    const uint count = type == TQ4 ? 16 : 8;
    const vec2 cubic = cubicOf(type);
    uvec4 codes = uvec4(0);
    for (uint step_ = count / 2; step_ > 0; step_ /= 2) {
        const vec4 t = vec4(codes + step_) - float(count / 2);
        precise const vec4 middle = t * (cubic.x + 0.75 * cubic.y + cubic.y * t * t);
        codes += step_ * uvec4(greaterThan(v, middle));
    }
    return codes;
}

uint packFour(uvec4 c) { return c.x | (c.y << 4) | (c.z << 8) | (c.w << 12); }

// Two bits of each code, and its third above them.
uint packThree(uvec4 c) {
    const uvec4 low = c & 3;
    const uvec4 high = c >> 2;
    return low.x | (low.y << 2) | (low.z << 4) | (low.w << 6) |
           (high.x << 8) | (high.y << 9) | (high.z << 10) | (high.w << 11);
}

// The scale is such that the product of a head with itself is right: sums of many then lose nothing to
// codes that are shorter than what they stand for.
void encodeNoise(uint type, uint slot, uint desk, uint quads, uint lane, bool mine) {
    scrambleHead(slot, quads, lane, mine);
    precise float squares = 0;
    for (uint quad = lane; quad < quads; quad += HEAD_LANES) squares += squaresOf(HEADS[slot][quad]);
    squares = headSum(squares);
    const float inverse = squares > 0 ? inversesqrt(squares / float(4 * quads)) : 0;
    float match = 0;
    for (uint quad = lane; quad < quads; quad += HEAD_LANES) {
        const vec4 v = HEADS[slot][quad];
        precise const vec4 normed = v * inverse;
        const uvec4 codes = nearestCodes(type, normed);
        const vec4 levels = levelsOf(type, codes << (type == TQ4 ? 19 : 20));
        match += dot(v, levels);
        if (!mine) continue;
        quadCodes[desk][quad] = type == TQ4 ? packFour(codes) : packThree(codes);
        HEADS[slot][quad] = levels;
    }
    match = headSum(match);
    if (mine && lane == 0) scaleBits[desk][0] = packHalf2x16(vec2(squares > 0 ? squares / match : 0, 0));
}

void encodeBytes(uint slot, uint desk, uint quads, uint lane, bool mine) {
    headOrder();
    for (uint first = 0; first < quads; first += HEAD_LANES) {
        const uint quad = first + lane;
        const vec4 v = quad < quads ? HEADS[slot][quad] : vec4(0);
        const vec4 magnitudes = abs(v);
        const float own = max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
        const float scale_ = stepOf(clusterMax(own, CHUNK_QUADS));
        const ivec4 codes = ivec4(roundEven(v * inverseOf(scale_)));
        if (!mine || quad >= quads) continue;
        quadCodes[desk][quad] = packCodes(codes);
        HEADS[slot][quad] = vec4(codes);
        if (quad % CHUNK_QUADS == 0) scaleBits[desk][quad / CHUNK_QUADS] = packHalf2x16(vec2(scale_, 0));
    }
}

uint quadCode(uint desk, uint quad, uint quads) { return quad < quads ? quadCodes[desk][quad] : 0; }

// Neighbouring positions, which others may write, share words.
void storeScale(UintsOut cache, uint start, uint index, uint bits) {
    const uint shift = 16 * (index % 2);
    atomicAnd(cache.at[start + index / 2], ~(0xFFFFu << shift));
    atomicOr(cache.at[start + index / 2], bits << shift);
}

void storeCodes(uint type, uint desk, uint quads, UintsOut cache, uint tile, uint offset, uint lane) {
    const uint chunks = chunksOf(4 * quads);
    const uint first = tile + offset * chunks * (type == TQ3 ? 2 : type);
    if (type == Q8_0) {
        for (uint i = lane; i < quads; i += HEAD_LANES) cache.at[first + i] = quadCodes[desk][i];
    } else if (type == TQ4) {
        for (uint i = lane; i < chunks * 4; i += HEAD_LANES) {
            cache.at[first + i] = quadCode(desk, 2 * i, quads) | (quadCode(desk, 2 * i + 1, quads) << 16);
        }
    } else {
        for (uint i = lane; i < chunks * 2; i += HEAD_LANES) {
            uint word = 0;
            for (uint j = 0; j < 4; j++) word |= (quadCode(desk, 4 * i + j, quads) & 0xFF) << (8 * j);
            cache.at[first + i] = word;
        }
        for (uint i = lane; i < chunks; i += HEAD_LANES) {
            uint word = 0;
            for (uint j = 0; j < 8; j++) word |= (quadCode(desk, 8 * i + j, quads) >> 8) << (4 * j);
            cache.at[tile + BLOCK_TOKENS * chunks * 2 + offset * chunks + i] = word;
        }
    }
    const uint scales = scalesOf(type, 4 * quads);
    for (uint i = lane; i < scales; i += HEAD_LANES) {
        storeScale(cache, tile + scalesStart(type, 4 * quads), offset * scales + i, scaleBits[desk][i]);
    }
}

// Takes HEADS[slot], if that is `mine`; what is left there has to be multiplied with `encodedScale`.
void encodeHead(uint type, uint slot, uint desk, uint quads, UintsOut cache, uint tile, uint offset, uint lane,
                bool mine) {
    if (type == Q8_0) encodeBytes(slot, desk, quads, lane, mine);
    else encodeNoise(type, slot, desk, quads, lane, mine);
    headOrder();
    if (mine) storeCodes(type, desk, quads, cache, tile, offset, lane);
}

// As the cache has it. (A scale that is unpacked where it was packed would not be rounded: compilers see
// through that.)
float encodedScale(uint type, uint desk, uint quad) {
    return unpackHalf2x16(scaleBits[desk][type == Q8_0 ? quad / CHUNK_QUADS : 0]).x;
}
