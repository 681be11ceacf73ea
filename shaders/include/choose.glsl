// Which experts take a row, and with what weight: the `used` best of EXPERTS scores. The scores are
// softmax(logits), sigmoid(logits) or the logits themselves; a bias may take part in the choice
// only. CHOOSERS invocations keep the scores in registers and take the best again and again. The
// including file defines them, chooserMax(), chooserSum(), the constants EXPERTS, SCORING, HAS_BIAS,
// NORMALIZE and HAS_FACTORS, and the parameters logits, bias, factors, choices, used and scale.
#include "choices.glsl"

const uint SOFTMAX = 0;
const uint SIGMOID = 1;
const uint SOFTMAX_OF_CHOSEN = 2;

const uint LANE_EXPERTS = (EXPERTS + CHOOSERS - 1) / CHOOSERS;

// Below every finite score. Not an infinity, which compilers may take for impossible.
const float LOWEST = -3.4e38;
// What llama.cpp divides by at least: the smallest normal half.
const float LEAST_SUM = 6.103515625e-5;

// The score of a chosen expert, which its weight replaces at the end.
float scoreOf(uint row, uint slot) {
    return uintBitsToFloat(choices.at[choiceAt(row, slot, used) + 1]);
}

// `lane`: of the CHOOSERS that do this together; `writes`: whether they are those whose word counts.
void chooseExperts(uint row, uint lane, bool writes) {
    float scores[LANE_EXPERTS];
    float best = LOWEST;
    [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
        const uint expert = lane + i * CHOOSERS;
        scores[i] = expert < EXPERTS ? logits.at[row * EXPERTS + expert] : LOWEST;
        best = max(best, scores[i]);
    }
    if (SCORING == SOFTMAX) {
        best = chooserMax(best);
        float total = 0;
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
            scores[i] = lane + i * CHOOSERS < EXPERTS ? exp(scores[i] - best) : 0;
            total += scores[i];
        }
        total = chooserSum(total);
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) scores[i] /= total;
    } else if (SCORING == SIGMOID) {
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) scores[i] = 1.0 / (1.0 + exp(-scores[i]));
    }

    // What decides; a taken expert drops to the floor.
    float ranks[LANE_EXPERTS];
    [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
        const uint expert = lane + i * CHOOSERS;
        ranks[i] = expert < EXPERTS ? scores[i] : LOWEST;
        if (HAS_BIAS && expert < EXPERTS) ranks[i] += bias.at[expert];
    }
    float total = 0;
    float most = LOWEST;
    for (uint slot = 0; slot < used; slot++) {
        float top = LOWEST;
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) top = max(top, ranks[i]);
        top = chooserMax(top);
        // The first of equals, as a negative number so that a maximum finds it.
        float first = -float(EXPERTS);
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
            if (ranks[i] == top) first = max(first, -float(lane + i * CHOOSERS));
        }
        // Clamped, for logits that are no numbers must not lead outside of the weights.
        const uint chosen = min(uint(-chooserMax(first)), EXPERTS - 1);
        float score = 0;
        [[unroll]] for (uint i = 0; i < LANE_EXPERTS; i++) {
            if (lane + i * CHOOSERS == chosen) {
                score = scores[i];
                ranks[i] = LOWEST;
            }
        }
        score = chooserSum(score);
        total += score;
        most = max(most, score);
        if (lane == 0 && writes) {
            choices.at[choiceAt(row, slot, used)] = chosen;
            choices.at[choiceAt(row, slot, used) + 1] = floatBitsToUint(score);
        }
    }
    if (lane != 0 || !writes) return;
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
