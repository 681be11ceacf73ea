// Heads before and after their rotation (RoPE, Su et al. 2021), with the RMS normalization before it
// where a model has that (Henry et al. 2020, arXiv 2010.04245). HEAD_LANES invocations work on a
// head together; the including file defines them, headLane() and headSum(float), and the constants
// NEIGHBOURS, ROTARY, MAGNITUDE and EPSILON. Sums and rotations are precise: what two kernels store of
// a key must not part where it is rounded to a half.
#include "rotary.glsl"

// Values i and j of pair p: (2i, 2i + 1) as in Llama, or (i, i + ROTARY / 2) as in NeoX.
uvec2 pairOf(uint p) {
    return NEIGHBOURS ? uvec2(2 * p, 2 * p + 1) : uvec2(p, p + ROTARY / 2);
}

vec2 turned(vec2 v, uvec2 frequency, uint position) {
    const vec2 turn = rotation(position, frequency) * MAGNITUDE;
    precise const vec2 after = vec2(v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x);
    return after;
}

// What makes the root mean square of a head 1.
float normScale(Floats source, uint base, uint width) {
    precise float squares = 0;
    for (uint i = headLane(); i < width; i += HEAD_LANES) {
        squares += source.at[base + i] * source.at[base + i];
    }
    return inversesqrt(headSum(squares) / float(width) + EPSILON);
}

// The value at `i` of a head before rotation.
float headValue(Floats source, uint base, uint i, float scale, bool normed, Floats weight) {
    precise const float value = source.at[base + i] * scale;
    precise const float weighted = normed ? value * weight.at[i] : value;
    return weighted;
}

// The value at `i` of a head after rotation.
float rotatedValue(Floats source, uint base, uint i, float scale, bool normed, Floats weight,
                   Frequencies frequencies, uint position) {
    if (i >= ROTARY) return headValue(source, base, i, scale, normed, weight);
    const uint p = NEIGHBOURS ? i / 2 : i % (ROTARY / 2);
    const uvec2 pair = pairOf(p);
    const vec2 v = turned(vec2(headValue(source, base, pair.x, scale, normed, weight),
                               headValue(source, base, pair.y, scale, normed, weight)),
                          frequencies.at[p], position);
    return i == pair.x ? v.x : v.y;
}
