// What attention does for its own row before it searches the cache: queries are scaled, and normed
// and rotated if they come as their product left them; with STORES the row's key and value go into the
// cache and are seen first.

// The row's own key and value, as the cache will have them: pairs of halves. (Unpacked at once they
// would not be rounded: compilers see through that.)
shared uint ownKey[STORES && !CODED_KEYS ? HEAD_WIDTH / 2 : 2];
shared uint ownValue[STORES && !CODED_VALUES ? VALUE_WIDTH / 2 : 2];

const uint HEAD_QUADS = (QUADS + LANES - 1) / LANES;          // of a head, that an invocation looks after
const uint TURNS = (GROUP + TEAMS - 1) / TEAMS;               // query heads of a team
const uint LANE_PAIRS = (ROTARY / 2 + LANES - 1) / LANES;

// A team's heads: its queries, and then the own key if it has that.
uint headOf(uint turn, uint team) { return turn == TURNS ? GROUP : min(turn * TEAMS + team, GROUP - 1); }

void turnPair(uint head, uvec2 pair, vec2 turn) {
    const vec2 v = turned(vec2(queries[head][pair.x / 4][pair.x % 4], queries[head][pair.y / 4][pair.y % 4]), turn);
    queries[head][pair.x / 4][pair.x % 4] = v.x;
    queries[head][pair.y / 4][pair.y % 4] = v.y;
}

void storeOwn(uint row, uint kvHead, uint position, uint lane, vec4 values[LANE_QUADS]) {
    const uint block = stepBlock(step_, stepSequence(step_, row), position / BLOCK_TOKENS);
    const uint keySlot = cacheWord(block, kvHead, position % BLOCK_TOKENS, kvHeads, HEAD_WIDTH);
    const uint valueSlot = cacheWord(block, kvHead, position % BLOCK_TOKENS, kvHeads, VALUE_WIDTH);
    for (uint quad = lane; quad < QUADS && !CODED_KEYS; quad += LANES) {
        const vec4 v = queries[OWN_KEY][quad];
        const uvec2 halves = uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
        ownKey[2 * quad] = halves.x;
        ownKey[2 * quad + 1] = halves.y;
        Uint2sOut(keyCache).at[keySlot / 2 + quad] = halves;
    }
    [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
        const uint quad = lane + i * LANES;
        if (quad >= VALUE_QUADS) continue;
        if (CODED_VALUES) {
            queries[OWN_VALUE][quad] = values[i];
            continue;
        }
        const uvec2 halves = uvec2(packHalf2x16(values[i].xy), packHalf2x16(values[i].zw));
        ownValue[2 * quad] = halves.x;
        ownValue[2 * quad + 1] = halves.y;
        Uint2sOut(valueCache).at[valueSlot / 2 + quad] = halves;
    }
}

void scrambleQueries(uint team, uint lane) {
    [[dont_unroll]] for (uint t = 0; t < TURNS; t++) {
        scrambleHead(headOf(t, team), QUADS, lane, t * TEAMS + team < GROUP);
    }
}

// The row's own key or value, which is in the room of head `slot`, into the cache as codes, and back as
// these have it.
void encodeSlot(uint type, uint slot, UintsOut cache, uint block, uint kvHead, uint offset, uint width, uint lane,
                bool mine) {
    const uint desk = slot - OWN_KEY;
    const uint tile = cacheTile(type, block, kvHead, kvHeads, width);
    encodeHead(type, slot, desk, width / 4, cache, tile, offset, lane, mine);
    for (uint quad = lane; quad < width / 4 && mine; quad += LANES) {
        queries[slot][quad] *= encodedScale(type, desk, quad);
    }
}

// All teams go through the barriers. Where key and value are kept alike, two teams work at the same time.
void encodeOwn(uint row, uint kvHead, uint position, uint team, uint lane) {
    const uint block = stepBlock(step_, stepSequence(step_, row), position / BLOCK_TOKENS);
    const uint offset = position % BLOCK_TOKENS;
    barrier();
    if (KEY_TYPE == VALUE_TYPE && HEAD_WIDTH == VALUE_WIDTH) {
        [[dont_unroll]] for (uint turn = team; turn < team + 2; turn += TEAMS) {
            const uint slot = turn == 0 ? OWN_KEY : OWN_VALUE;
            UintsOut cache = UintsOut(valueCache);
            if (turn == 0) cache = UintsOut(keyCache);
            encodeSlot(KEY_TYPE, slot, cache, block, kvHead, offset, HEAD_WIDTH, lane, turn < 2);
        }
        return;
    }
    if (CODED_KEYS) {
        encodeSlot(KEY_TYPE, OWN_KEY, UintsOut(keyCache), block, kvHead, offset, HEAD_WIDTH, lane, team == 0);
    }
    if (CODED_VALUES) {
        encodeSlot(VALUE_TYPE, OWN_VALUE, UintsOut(valueCache), block, kvHead, offset, VALUE_WIDTH, lane, team == 0);
    }
}

// Queries into shared memory; with `own`, the row's key and value there and into the cache, too. Each
// team does some heads. All that is read is on its way before the first of it is waited for.
void prepareHeads(uint row, uint kvHead, uint firstHead, uint position, uint team, uint lane, bool own) {
    vec4 mine[TURNS + 1][HEAD_QUADS];
    vec4 values[LANE_QUADS];
    uvec2 turns[LANE_PAIRS + 1];
    [[unroll]] for (uint t = 0; t < TURNS; t++) {
        const uint base = (firstHead + headOf(t, team)) * (GATED ? 2 : 1) * QUADS;
        [[unroll]] for (uint i = 0; i < HEAD_QUADS; i++) {
            mine[t][i] = query.at[base + min(lane + i * LANES, QUADS - 1)];
        }
    }
    if (STORES && own) {
        const uint head = row * kvHeads + kvHead;
        [[unroll]] for (uint i = 0; i < HEAD_QUADS; i++) {
            mine[TURNS][i] = key.at[head * QUADS + min(lane + i * LANES, QUADS - 1)];
        }
        [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
            values[i] = value.at[head * VALUE_QUADS + min(lane + i * LANES, VALUE_QUADS - 1)];
        }
    }
    [[unroll]] for (uint i = 0; i < LANE_PAIRS; i++) {
        turns[i] = frequencies.at[min(lane + i * LANES, ROTARY / 2 - 1)];
    }

    [[unroll]] for (uint t = 0; t <= TURNS; t++) {
        const bool isKey = t == TURNS;
        if (isKey && !(STORES && own)) continue;
        float factor = isKey ? 1 : scale;
        if (isKey ? NORM_KEY : NORM_QUERY) {
            precise float squares = 0;
            [[unroll]] for (uint i = 0; i < HEAD_QUADS; i++) {
                if (lane + i * LANES < QUADS) squares += squaresOf(mine[t][i]);
            }
            factor *= normFactor(squares, HEAD_WIDTH);
        }
        [[unroll]] for (uint i = 0; i < HEAD_QUADS; i++) {
            const uint quad = lane + i * LANES;
            if (quad >= QUADS) continue;
            precise vec4 v = mine[t][i] * factor;
            if (isKey && NORM_KEY) v *= keyNorm.at[quad];
            if (!isKey && NORM_QUERY) v *= queryNorm.at[quad];
            queries[headOf(t, team)][quad] = v;
        }
    }
    if (STORES && own && NORM_VALUE) {
        precise float squares = 0;
        [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) {
            if (lane + i * LANES < VALUE_QUADS) squares += squaresOf(values[i]);
        }
        const float factor = normFactor(squares, VALUE_WIDTH);
        [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) values[i] *= factor;
    }
    teamBarrier();
    [[unroll]] for (uint i = 0; i < LANE_PAIRS; i++) {
        const uint p = lane + i * LANES;
        if (p >= ROTARY / 2) continue;
        const vec2 turn = rotation(position, turns[i]) * MAGNITUDE;
        // The last team may have a head less.
        [[unroll]] for (uint t = 0; t < TURNS; t++) {
            if (t * TEAMS + team < GROUP) turnPair(headOf(t, team), pairOf(p), turn);
        }
        if (STORES && own) turnPair(GROUP, pairOf(p), turn);
    }
    teamBarrier();
    if (STORES && own) storeOwn(row, kvHead, position, lane, values);
}

// What a team finds before it searches: nothing, or the row's own key.
void beginWith(bool own, uint lane, out Found found[GROUP]) {
    [[unroll]] for (uint g = 0; g < GROUP; g++) {
        found[g].best = LOWEST;
        found[g].total = 0;
        [[unroll]] for (uint i = 0; i < LANE_QUADS; i++) found[g].sums[i] = vec4(0);
        if (!STORES) continue;
        float score = 0;
        // Of constant length: a loop that remains would keep this one, and what is found out of registers.
        [[unroll]] for (uint i = 0; i < HEAD_QUADS; i++) {
            const uint quad = lane + i * LANES;
            if (quad >= QUADS) continue;
            const vec2 low = unpackHalf2x16(ownKey[2 * quad]);
            const vec4 halves = vec4(low, unpackHalf2x16(ownKey[2 * quad + 1]));
            score += dot(queries[g][quad], CODED_KEYS ? queries[OWN_KEY][quad] : halves);
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
            const vec4 halves = vec4(low, unpackHalf2x16(ownValue[2 * quad + 1]));
            found[g].sums[i] = CODED_VALUES ? queries[OWN_VALUE][quad] : halves;
        }
    }
}
