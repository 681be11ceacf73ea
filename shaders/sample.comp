// Logits → the next token, without the host: biases, then the best candidates, then top-p, min-p,
// temperature and a draw with a random number that the host sent along. The order and the rules are
// those of src/engine/sampler.ts.
//
// Workgroups share the vocabulary of an output: each finds the best candidates of its part, and the
// last one to finish merges all lists and draws. Grid: parts × outputs.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 256;
// Candidates that are kept: 1 where only the best token is wanted.
layout(constant_id = 1) const uint CANDIDATES = 64;
// Logits that an invocation looks after; a part has WORKGROUP times as many.
const uint SHARE = 8;
#include "include/reduce.glsl"

struct Sampling {
    float temperature;
    uint topK;      // 1 to CANDIDATES
    float topP;
    float minP;
    float random;   // 0 to 1
    uint firstBias; // biases of this output in the list
    uint biasCount;
    uint pad;
};

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Samplings {
    Sampling at[];
};
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Biases {
    uvec2 at[];  // token, float bits of what is added
};
layout(buffer_reference, std430, buffer_reference_align = 8) coherent buffer Candidates {
    uvec2 at[];  // float bits of the logit, token
};
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Counters { uint at[]; };

layout(push_constant, std430) uniform Parameters {
    Floats logits;          // [outputs, vocabulary]
    Samplings samplings;    // [outputs]
    Biases biases;
    Candidates candidates;  // [outputs, parts, CANDIDATES]
    Counters counters;      // [outputs], zero between dispatches
    UintsOut tokens;        // [outputs], for the host
    UintsOut latest;        // [sequences], for the next step
    Step step_;
    uint vocabulary;
};

const float LOWEST = -3.4e38;
const uint NO_TOKEN = 0xFFFFFFFF;

shared float listLogits[CANDIDATES];
shared uint listTokens[CANDIDATES];
shared uint arrival;

// The invocation that offers the most, the first of equals; NO_TOKEN if none has anything left.
uint bestOffer(float offer, out float best) {
    best = workgroupMax(offer);
    const float first = workgroupMax(offer == best ? -float(gl_LocalInvocationID.x) : LOWEST);
    return best > LOWEST ? uint(-first) : NO_TOKEN;
}

float biased(uint output_, Sampling s, uint token) {
    float logit = logits.at[output_ * vocabulary + token];
    for (uint i = 0; i < s.biasCount; i++) {
        const uvec2 bias = biases.at[s.firstBias + i];
        if (bias.x == token) logit += uintBitsToFloat(bias.y);
    }
    return logit;
}

uint candidateAt(uint output_, uint part) {
    return (output_ * gl_NumWorkGroups.x + part) * CANDIDATES;
}

// The best candidates of this part, sorted: each round takes the best of what is left. Invocations
// look after neighbouring tokens, so that of equals the lowest id comes first.
void searchPart(uint output_, Sampling s) {
    const uint first = (gl_WorkGroupID.x * WORKGROUP + gl_LocalInvocationID.x) * SHARE;
    float values[SHARE];
    [[unroll]] for (uint i = 0; i < SHARE; i++) {
        values[i] = first + i < vocabulary ? biased(output_, s, first + i) : LOWEST;
    }
    const uint at = candidateAt(output_, gl_WorkGroupID.x);
    for (uint round = 0; round < s.topK; round++) {
        float mine = values[0];
        uint index = 0;
        [[unroll]] for (uint i = 1; i < SHARE; i++) {
            if (values[i] > mine) {
                mine = values[i];
                index = i;
            }
        }
        float best;
        const uint winner = bestOffer(mine, best);
        if (gl_LocalInvocationID.x == (winner == NO_TOKEN ? 0 : winner)) {
            const uint token = winner == NO_TOKEN ? NO_TOKEN : first + index;
            candidates.at[at + round] = uvec2(floatBitsToUint(best), token);
            [[unroll]] for (uint i = 0; i < SHARE; i++) if (i == index) values[i] = LOWEST;
        }
        if (winner == NO_TOKEN) break;
    }
}

// Whether this workgroup is the last of those of an output.
bool arriveLast(uint output_) {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0) arrival = atomicAdd(counters.at[output_], 1);
    barrier();
    if (arrival + 1 < gl_NumWorkGroups.x) return false;
    memoryBarrierBuffer();
    if (gl_LocalInvocationID.x == 0) counters.at[output_] = 0;
    return true;
}

// Merges the sorted lists of all parts into the shared list; returns its length. There are no more
// parts than invocations.
uint mergeParts(uint output_, Sampling s) {
    const uint self = gl_LocalInvocationID.x;
    uint next = 0;
    uint count = 0;
    for (; count < s.topK; count++) {
        uvec2 head = uvec2(0, NO_TOKEN);
        if (self < gl_NumWorkGroups.x && next < s.topK) {
            head = candidates.at[candidateAt(output_, self) + next];
        }
        float best;
        const uint winner =
            bestOffer(head.y == NO_TOKEN ? LOWEST : uintBitsToFloat(head.x), best);
        if (winner == NO_TOKEN) break;
        if (self == winner) {
            listLogits[count] = best;
            listTokens[count] = head.y;
            next++;
        }
    }
    barrier();
    return count;
}

// Draws from the sorted list: the shortest head of it that holds topP of the probability, of that the
// tokens at least minP as likely as the best, and of these one by its probability at a temperature.
uint drawToken(Sampling s, uint count) {
    if (s.temperature == 0 || count <= 1) return 0;
    const float best = listLogits[0];
    float total = 0;
    for (uint i = 0; i < count; i++) total += exp(listLogits[i] - best);
    float reached = 0;
    uint kept = 0;
    while (kept < count && (kept == 0 || s.topP >= 1 || reached < s.topP * total)) {
        reached += exp(listLogits[kept] - best);
        kept++;
    }
    while (kept > 1 && exp(listLogits[kept - 1] - best) < s.minP) kept--;
    float rest = 0;
    for (uint i = 0; i < kept; i++) rest += exp((listLogits[i] - best) / s.temperature);
    rest *= s.random;
    for (uint i = 0; i < kept; i++) {
        rest -= exp((listLogits[i] - best) / s.temperature);
        if (rest < 0) return i;
    }
    return kept - 1;
}

void main() {
    const uint output_ = gl_WorkGroupID.y;
    if (output_ >= step_.outputCount) return;
    const Sampling s = samplings.at[output_];
    searchPart(output_, s);
    if (!arriveLast(output_)) return;
    const uint count = mergeParts(output_, s);
    if (gl_LocalInvocationID.x != 0) return;
    const uint token = count == 0 ? 0 : listTokens[drawToken(s, count)];
    tokens.at[output_] = token;
    latest.at[stepSequence(step_, stepOutputRow(step_, output_))] = token;
}
