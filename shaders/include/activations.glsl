// Activations as products read them. In float arithmetic: plain floats. With int8 (ACTIVATION_int8):
// 8-bit codes in blocks of 32 values with a common step, and for each run of 16 values the pair
// (step, step · sum of the codes), which the offsets of the weights are multiplied with.
//
// ActivationUnit is what one invocation needs for a unit of weights; loadActivation(column, …) takes it
// from shared memory after a prologue, or from a buffer that another kernel has prepared.
#ifdef ACTIVATION_int8
#extension GL_EXT_integer_dot_product : require
#include "codes.glsl"

struct ActivationUnit {
    uvec4 codes[UNIT_RUNS];
    vec2 steps[UNIT_RUNS];
};

float unitProduct(uint codes[UNIT_QUADS], vec2 affines[UNIT_RUNS], ActivationUnit a) {
    float sum = 0;
    [[unroll]] for (uint run = 0; run < UNIT_RUNS; run++) {
        int products = 0;
        [[unroll]] for (uint i = 0; i < 4; i++) {
            products += dotPacked4x8EXT(int(codes[4 * run + i]), int(a.codes[run][i]));
        }
        sum += affines[run].x * a.steps[run].x * float(products) - affines[run].y * a.steps[run].y;
    }
    return sum;
}
// Of prepared rows: `first` is the number of the first value of the unit's block.
void loadPrepared(Float4s x, Float2s steps, uint first, uint unit, out ActivationUnit a) {
    [[unroll]] for (uint run = 0; run < UNIT_RUNS; run++) {
        const uint run16 = (first + quadColumn(unit, 4 * run)) / 16;
        a.codes[run] = Uint4s(x).at[run16];
        a.steps[run] = steps.at[run16];
    }
}

float weightProduct(WeightUnit w, ActivationUnit a) { return unitProduct(w.codes, w.affines, a); }
#else
struct ActivationUnit {
    vec4 values[UNIT_QUADS];
};

void loadPrepared(Float4s x, Float2s steps, uint first, uint unit, out ActivationUnit a) {
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) a.values[q] = x.at[(first + quadColumn(unit, q)) / 4];
}

float weightProduct(WeightUnit w, ActivationUnit a) {
    vec4 sum = vec4(0);
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) sum += weightQuad(w, q) * a.values[q];
    return (sum.x + sum.y) + (sum.z + sum.w);
}

float unitProduct(vec4 weights[UNIT_QUADS], ActivationUnit a) {
    vec4 sum = vec4(0);
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) sum += weights[q] * a.values[q];
    return (sum.x + sum.y) + (sum.z + sum.w);
}
#endif
