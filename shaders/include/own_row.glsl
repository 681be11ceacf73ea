// What attention does for its own row before it searches the cache: queries are scaled and, with
// ROPE, normed and rotated; with STORES the row's key and value go into the cache and are seen first.

// The row's own key and value, as the cache will have them: pairs of halves. (Unpacked at once they
// would not be rounded: compilers see through that.)
shared uint ownKey[STORES ? HEAD_WIDTH / 2 : 1];
shared uint ownValue[STORES ? VALUE_WIDTH / 2 : 1];

// Queries as scores need them: scaled, and rotated with ROPE.
void loadQueries(uint firstHead, uint position, uint team) {
    if (!ROPE) {
        for (uint i = gl_LocalInvocationID.x; i < GROUP * QUADS; i += WORKGROUP) {
            const uint head = firstHead + i / QUADS;
            queries[i / QUADS][i % QUADS] =
                query.at[(GATED ? 2 * head : head) * QUADS + i % QUADS] * scale;
        }
        return;
    }
    for (uint first = 0; first < GROUP; first += TEAMS) {
        const uint g = min(first + team, GROUP - 1);
        const uint base = (firstHead + g) * (GATED ? 2 : 1) * HEAD_WIDTH;
        Floats source = Floats(query);
        float factor = scale;
        if (NORM_QUERY) factor *= normScale(source, base, HEAD_WIDTH);
        for (uint i = headLane(); i < HEAD_WIDTH; i += LANES) {
            queries[g][i / 4][i % 4] = rotatedValue(source, base, i, factor, NORM_QUERY, queryNorm,
                                                    frequencies, position);
        }
    }
}

// Rotates and stores the key and the value of the row itself; one team does it.
void storeOwn(uint row, uint kvHead, uint position, uint lane) {
    const uint head = row * kvHeads + kvHead;
    const uint block = stepBlock(step_, stepSequence(step_, row), position / BLOCK_TOKENS);
    const uint keySlot = cacheWord(block, kvHead, position % BLOCK_TOKENS, kvHeads, HEAD_WIDTH);
    const uint valueSlot = cacheWord(block, kvHead, position % BLOCK_TOKENS, kvHeads, VALUE_WIDTH);
    const float keyScale = NORM_KEY ? normScale(key, head * HEAD_WIDTH, HEAD_WIDTH) : 1;
    for (uint i = lane; i < HEAD_WIDTH / 2; i += LANES) {
        vec2 pair;
        [[unroll]] for (uint j = 0; j < 2; j++) {
            pair[j] = rotatedValue(key, head * HEAD_WIDTH, 2 * i + j, keyScale, NORM_KEY, keyNorm,
                                   frequencies, position);
        }
        ownKey[i] = packHalf2x16(pair);
        UintsOut(keyCache).at[keySlot + i] = ownKey[i];
    }
    const float valueScale = NORM_VALUE ? normScale(value, head * VALUE_WIDTH, VALUE_WIDTH) : 1;
    for (uint i = lane; i < VALUE_WIDTH / 2; i += LANES) {
        const uint base = head * VALUE_WIDTH + 2 * i;
        ownValue[i] = packHalf2x16(vec2(value.at[base], value.at[base + 1]) * valueScale);
        UintsOut(valueCache).at[valueSlot + i] = ownValue[i];
    }
}

// What a team finds before it searches: nothing, or the row's own key.
void beginWith(bool own, uint lane, out Found found[GROUP]) {
    [[unroll]] for (uint g = 0; g < GROUP; g++) {
        found[g].best = LOWEST;
        found[g].total = 0;
        [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) found[g].sums[i] = vec4(0);
        if (!STORES) continue;
        float score = 0;
        for (uint i = lane; i < QUADS; i += LANES) {
            const vec2 low = unpackHalf2x16(ownKey[2 * i]);
            score += dot(queries[g][i], vec4(low, unpackHalf2x16(ownKey[2 * i + 1])));
        }
        score = clusterSum(score, LANES);
        if (!own) continue;
        found[g].best = CAPPED ? softCap(score, cap) : score;
        found[g].total = 1;
        [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
            const uint quad = quadOf(lane, i);
            const bool mine = quad < VALUE_QUADS && (SIDES == 1 || lane < VALUE_QUADS);
            if (!mine) continue;
            const vec2 low = unpackHalf2x16(ownValue[2 * quad]);
            found[g].sums[i] = vec4(low, unpackHalf2x16(ownValue[2 * quad + 1]));
        }
    }
}
