// Which experts take a row, and with what weight: the `used` best of EXPERTS scores. The scores are
// softmax(logits), sigmoid(logits) or the logits themselves; a bias may take part in the choice
// only. One workgroup a row, which keeps the scores in registers and takes the best again and again.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

const uint SOFTMAX = 0;
const uint SIGMOID = 1;
const uint SOFTMAX_OF_CHOSEN = 2;

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint EXPERTS = 128;
layout(constant_id = 2) const uint SCORING = SOFTMAX;
layout(constant_id = 3) const bool HAS_BIAS = false;
layout(constant_id = 4) const bool NORMALIZE = true;
layout(constant_id = 5) const bool HAS_FACTORS = false;
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Floats logits;     // [rows, EXPERTS]
    Floats bias;       // [EXPERTS], read with HAS_BIAS
    Floats factors;    // [EXPERTS], read with HAS_FACTORS: on what an expert gives
    UintsOut choices;  // see include/choices.glsl
    Step step_;
    uint used;         // not a constant: compilers would unroll the rounds
    float scale;       // of the weights
};
#include "include/choices.glsl"

const uint LANE_EXPERTS = (EXPERTS + WORKGROUP - 1) / WORKGROUP;

// Below every finite score. Not an infinity, which compilers may take for impossible.
const float LOWEST = -3.4e38;
// What llama.cpp divides by at least: the smallest normal half.
const float LEAST_SUM = 6.103515625e-5;

// The score of a chosen expert, which its weight replaces at the end.
float scoreOf(uint row, uint slot) {
    return uintBitsToFloat(choices.at[choiceAt(row, slot, used) + 1]);
}

void main() {
    const uint row = gl_WorkGroupID.x;
    if (row >= step_.rowCount) return;
    const uint lane = gl_LocalInvocationID.x;

    float scores[LANE_EXPERTS];
    float best = LOWEST;
    [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
        const uint expert = lane + i * WORKGROUP;
        scores[i] = expert < EXPERTS ? logits.at[row * EXPERTS + expert] : LOWEST;
        best = max(best, scores[i]);
    }
    if (SCORING == SOFTMAX) {
        best = workgroupMax(best);
        float total = 0;
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
            scores[i] = lane + i * WORKGROUP < EXPERTS ? exp(scores[i] - best) : 0;
            total += scores[i];
        }
        total = workgroupSum(total);
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) scores[i] /= total;
    } else if (SCORING == SIGMOID) {
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) scores[i] = 1.0 / (1.0 + exp(-scores[i]));
    }

    // What decides; a taken expert drops to the floor.
    float ranks[LANE_EXPERTS];
    [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
        const uint expert = lane + i * WORKGROUP;
        ranks[i] = expert < EXPERTS ? scores[i] : LOWEST;
        if (HAS_BIAS && expert < EXPERTS) ranks[i] += bias.at[expert];
    }
    float total = 0;
    float most = LOWEST;
    for (uint slot = 0; slot < used; slot++) {
        float top = LOWEST;
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) top = max(top, ranks[i]);
        top = workgroupMax(top);
        // The first of equals, as a negative number so that a maximum finds it.
        float first = -float(EXPERTS);
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
            if (ranks[i] == top) first = max(first, -float(lane + i * WORKGROUP));
        }
        // Clamped, for logits that are no numbers must not lead outside of the weights.
        const uint chosen = min(uint(-workgroupMax(first)), EXPERTS - 1);
        float score = 0;
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
            if (lane + i * WORKGROUP == chosen) {
                score = scores[i];
                ranks[i] = LOWEST;
            }
        }
        score = workgroupSum(score);
        total += score;
        most = max(most, score);
        if (lane == 0) {
            choices.at[choiceAt(row, slot, used)] = chosen;
            choices.at[choiceAt(row, slot, used) + 1] = floatBitsToUint(score);
        }
    }
    if (lane != 0) return;
    if (SCORING == SOFTMAX_OF_CHOSEN) {
        total = 0;
        for (uint slot = 0; slot < used; slot++) total += exp(scoreOf(row, slot) - most);
    }
    const bool divides = NORMALIZE || SCORING == SOFTMAX_OF_CHOSEN;
    const float factor = divides ? scale / max(total, LEAST_SUM) : scale;
    for (uint slot = 0; slot < used; slot++) {
        const float score = scoreOf(row, slot);
        float share = SCORING == SOFTMAX_OF_CHOSEN ? exp(score - most) : score;
        if (HAS_FACTORS) share *= factors.at[choices.at[choiceAt(row, slot, used)]];
        choices.at[choiceAt(row, slot, used) + 1] = floatBitsToUint(share * factor);
    }
}
