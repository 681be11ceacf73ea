// A rotation that makes the values of a head alike: random signs, then Walsh and Hadamard's transform of
// blocks, as long as powers of two divide the width; several blocks are mixed by a reflection, which takes
// twice the blocks' mean from each. Products of heads that are both scrambled are as before. The including
// file defines HEADS, a shared array of heads of quads, HEAD_LANES and headOrder(), which orders what the
// invocations of a head wrote there before what they read.

// Signs of a quad, from a permuted congruential generator (O'Neill 2014).
vec4 signsOf(uint quad) {
    const uint state = quad * 747796405u + 2891336453u;
    const uint word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
    return uintBitsToFloat((uvec4(word, word << 1, word << 2, word << 3) & 0x80000000u) | 0x3F800000u);
}

// Works on HEADS[slot], or only goes through the same barriers if that is not `mine`.
void transformHead(uint slot, uint quads, uint lane, bool mine) {
    const uint across = quads & (~quads + 1);  // quads of a block
    const uint blocks = quads / across;
    [[dont_unroll]] for (uint stride = 1; stride < across; stride *= 2) {
        headOrder();
        if (!mine) continue;
        for (uint pair = lane; pair < quads / 2; pair += HEAD_LANES) {
            const uint i = 2 * pair - pair % stride;
            const vec4 a = HEADS[slot][i];
            const vec4 b = HEADS[slot][i + stride];
            HEADS[slot][i] = a + b;
            HEADS[slot][i + stride] = a - b;
        }
    }
    headOrder();
    if (blocks > 1) {
        for (uint column = lane; column < across && mine; column += HEAD_LANES) {
            precise vec4 sum = vec4(0);
            for (uint i = column; i < quads; i += across) sum += HEADS[slot][i];
            precise const vec4 twice = sum * (2.0 / float(blocks));
            for (uint i = column; i < quads; i += across) {
                precise const vec4 v = HEADS[slot][i] - twice;
                HEADS[slot][i] = v;
            }
        }
        headOrder();
    }
}

// The transform within a quad, and what makes all of it keep lengths.
vec4 transformQuad(vec4 v, uint quads) {
    const vec2 sums = v.xz + v.yw;
    const vec2 differences = v.xz - v.yw;
    precise const vec4 result = vec4(sums.x + sums.y, differences.x + differences.y,
                                     sums.x - sums.y, differences.x - differences.y) *
                                inversesqrt(float(4 * (quads & (~quads + 1))));
    return result;
}

void scrambleHead(uint slot, uint quads, uint lane, bool mine) {
    headOrder();
    for (uint quad = lane; quad < quads && mine; quad += HEAD_LANES) {
        HEADS[slot][quad] = transformQuad(HEADS[slot][quad] * signsOf(quad), quads);
    }
    transformHead(slot, quads, lane, mine);
}

// The way back but for the signs, which the reader has to apply.
void unscrambleHead(uint slot, uint quads, uint lane, bool mine) {
    headOrder();
    for (uint quad = lane; quad < quads && mine; quad += HEAD_LANES) {
        HEADS[slot][quad] = transformQuad(HEADS[slot][quad], quads);
    }
    transformHead(slot, quads, lane, mine);
}
