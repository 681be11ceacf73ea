// Heads before and after their rotation (RoPE, Su et al. 2021), with the RMS normalization before it
// where a model has that (Henry et al. 2020, arXiv 2010.04245). The including file defines headSum(float)
// over the invocations that work on a head together, and the constants NEIGHBOURS, ROTARY and EPSILON.
// Sums and rotations are precise: what two kernels store of a key must not part where it is rounded to
// a half.
#include "rotary.glsl"

// Values i and j of pair p: (2i, 2i + 1) as in Llama, or (i, i + ROTARY / 2) as in NeoX.
uvec2 pairOf(uint p) {
    return NEIGHBOURS ? uvec2(2 * p, 2 * p + 1) : uvec2(p, p + ROTARY / 2);
}

// A pair after a turn of (cosine, sine).
vec2 turned(vec2 v, vec2 turn) {
    precise const vec2 after = vec2(v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x);
    return after;
}

float squaresOf(vec4 v) {
    precise const float sum = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    return sum;
}

// What makes the root mean square of a head 1, from what each invocation has of its squares: a head's
// quads go round its invocations.
float normFactor(float squares, uint width) {
    return inversesqrt(headSum(squares) / float(width) + EPSILON);
}
