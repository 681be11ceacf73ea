// Logits → the next token, without the host: biases, then the best candidates, then top-p, min-p,
// temperature and a draw with a random number that the host sent along. The order and the rules are
// those of src/engine/sampler.ts.
//
// Workgroups share the vocabulary of an output: each finds the best candidates of its part, and the
// last one to finish merges all lists and draws. Grid: parts × outputs.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 128;
// Candidates that are kept, fewer than a workgroup has invocations.
layout(constant_id = 1) const uint CANDIDATES = 64;
// Logits that an invocation looks after; a part has WORKGROUP times as many.
const uint SHARE = 16;
// What is read at a time, rather than one by one: candidates of a list, and of the shared arrays.
const uint AHEAD = 4;
const uint STRETCH = 8;

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
    uvec2 at[];  // key of the logit, token
};

layout(push_constant, std430) uniform Parameters {
    Floats logits;          // [outputs, vocabulary]
    Samplings samplings;    // [outputs]
    Biases biases;
    Candidates candidates;  // [outputs, parts, CANDIDATES], sorted lists
    Counters counters;      // [outputs], zero between dispatches
    UintsOut tokens;        // [outputs], for the host
    UintsOut latest;        // [sequences], for the next step
    Step step_;
    uint vocabulary;
};

// A candidate is a key, whose order is that of the logits, and a token. No token has key 0.
const uvec2 NOTHING = uvec2(0, 0xFFFFFFFF);

shared uvec2 offers[WORKGROUP];
shared uint offerCount;
shared uvec2 sorted[CANDIDATES];  // the best of the offers, then NOTHING
shared float weights[CANDIDATES];
shared uint kept;  // of the sorted candidates

// What a candidate has to reach to be offered; that of a first round is an invocation's own.
uvec2 bound = NOTHING;

// Minus infinity and what is no number give 0: such tokens are never chosen.
uint keyOf(float logit) {
    const uint bits = floatBitsToUint(logit);
    const uint magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000 || bits == 0xFF800000) return 0;
    if (magnitude == 0) return 0x80000000;  // of either sign
    return bits == magnitude ? bits | 0x80000000 : ~bits;
}

float logitOf(uint key) {
    return uintBitsToFloat(key >= 0x80000000 ? key & 0x7FFFFFFF : ~key);
}

bool precedes(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y < b.y); }

// How a workgroup finds the best of many, without a reduction for each of them. First, every
// invocation offers one candidate, the best that it has. The last of the `topK` best offers is a
// bound: there are that many at least as good. Then all offer whatever reaches the bound, which as a
// rule is little more than `topK`, and each counts the offers that precede its own, which gives its
// place in the order. Should there be more offers than room, then those in the room give a higher
// bound, and another round follows: so long as there are more invocations than candidates, bounds
// rise.

void openRound() {
    barrier();
    const uint self = gl_LocalInvocationID.x;
    if (self == 0) offerCount = 0;
    offers[self] = NOTHING;
    if (self < CANDIDATES) sorted[self] = NOTHING;
    barrier();
}

bool reachesBound(uvec2 candidate) { return candidate.x != 0 && !precedes(bound, candidate); }

void offer(uvec2 candidate) {
    if (!reachesBound(candidate)) return;
    const uint place = atomicAdd(offerCount, 1);
    if (place < WORKGROUP) offers[place] = candidate;
}

void closeRound(uint topK) {
    barrier();
    const uint self = gl_LocalInvocationID.x;
    const uint count = min(offerCount, WORKGROUP);
    if (self < count) {
        const uvec2 mine = offers[self];
        uint rank = 0;
        for (uint i = 0; i < count; i += STRETCH) {
            [[unroll]] for (uint j = 0; j < STRETCH; j++) rank += uint(precedes(offers[i + j], mine));
        }
        if (rank < topK) sorted[rank] = mine;
    }
    barrier();
    bound = sorted[topK - 1];
}

// Whether round `index` has to follow on those before it.
bool isRound(uint index) { return index < 2 || offerCount > WORKGROUP; }

uint candidateAt(uint output_, uint part) {
    return (output_ * gl_NumWorkGroups.x + part) * CANDIDATES;
}

// The best candidates of this part: a sorted list.
void searchPart(uint output_, Sampling s) {
    const uint self = gl_LocalInvocationID.x;
    const uint first = gl_WorkGroupID.x * WORKGROUP * SHARE + self;
    float values[SHARE];
    [[unroll]] for (uint i = 0; i < SHARE; i++) {
        // Without a condition, so that all are under way at once.
        const uint token = min(first + i * WORKGROUP, vocabulary - 1);
        values[i] = logits.at[output_ * vocabulary + token];
    }
    for (uint b = 0; b < s.biasCount; b++) {
        const uvec2 bias = biases.at[s.firstBias + b];
        [[unroll]] for (uint i = 0; i < SHARE; i++) {
            if (bias.x == first + i * WORKGROUP) values[i] += uintBitsToFloat(bias.y);
        }
    }
    uint keys[SHARE];
    bound = NOTHING;
    [[unroll]] for (uint i = 0; i < SHARE; i++) {
        const uint token = first + i * WORKGROUP;
        keys[i] = token < vocabulary ? keyOf(values[i]) : 0;
        if (keys[i] > bound.x) bound = uvec2(keys[i], token);
    }
    for (uint round = 0; isRound(round); round++) {
        openRound();
        // Few have more than one to offer.
        uint chosen = 0;
        [[unroll]] for (uint i = 0; i < SHARE; i++) if (keys[i] >= bound.x) chosen |= 1 << i;
        for (; chosen != 0; chosen &= chosen - 1) {
            const uint index = findLSB(chosen);
            uint key = 0;
            [[unroll]] for (uint i = 0; i < SHARE; i++) if (i == index) key = keys[i];
            offer(uvec2(key, first + index * WORKGROUP));
        }
        closeRound(s.topK);
    }
    if (self < CANDIDATES) candidates.at[candidateAt(output_, gl_WorkGroupID.x) + self] = sorted[self];
}

#include "include/arrival.glsl"

// Merges the lists of all parts into the shared one; returns its length. An invocation looks after
// every `team`-th candidate of a list, or of several lists.
uint mergeParts(uint output_, Sampling s) {
    const uint team = clamp(WORKGROUP / gl_NumWorkGroups.x, 1, CANDIDATES);
    const uint member = gl_LocalInvocationID.x % team;
    const uint firstPart = gl_LocalInvocationID.x / team;
    bound = NOTHING;
    for (uint round = 0; isRound(round); round++) {
        const uint end = round == 0 ? team : s.topK;
        openRound();
        for (uint part = firstPart; part < gl_NumWorkGroups.x; part += WORKGROUP / team) {
            const uint list = candidateAt(output_, part);
            for (uint at = member; at < end; at += AHEAD * team) {
                uvec2 held[AHEAD];
                [[unroll]] for (uint i = 0; i < AHEAD; i++) {
                    const uint index = at + i * team;
                    const uvec2 candidate = candidates.at[list + min(index, CANDIDATES - 1)];
                    held[i] = index < end ? candidate : NOTHING;
                }
                [[unroll]] for (uint i = 0; i < AHEAD; i++) offer(held[i]);
                if (!reachesBound(held[AHEAD - 1])) break;
            }
        }
        closeRound(s.topK);
    }
    return min(offerCount, s.topK);
}

// Draws from the sorted list: the shortest head of it that holds topP of the probability, of that the
// tokens at least minP as likely as the best, and of these one by its probability at a temperature.
// The exponentials are computed side by side; the sums, whose order matters, by each invocation. Past
// the end of the list are weights of 0, so that several are read at a time.
uint drawToken(Sampling s, uint count) {
    if (s.temperature == 0 || count <= 1) return 0;
    const uint self = gl_LocalInvocationID.x;
    const float gap = self < count ? logitOf(sorted[self].x) - logitOf(sorted[0].x) : 0;
    if (self < CANDIDATES) weights[self] = self < count ? exp(gap) : 0;
    if (self == 0) kept = 0;
    barrier();
    float total = 0;
    float before = 0;  // what precedes the invocation's own
    [[dont_unroll]] for (uint i = 0; i < count; i += STRETCH) {
        [[unroll]] for (uint j = 0; j < STRETCH; j++) {
            if (i + j == self) before = total;
            total += weights[i + j];
        }
    }
    const bool isWithin = s.topP >= 1 || before < s.topP * total;
    if (self == 0 || (self < count && isWithin && weights[self] >= s.minP)) atomicAdd(kept, 1);
    barrier();
    if (self < CANDIDATES) weights[self] = self < kept ? exp(gap / s.temperature) : 0;
    barrier();
    float rest = 0;
    [[dont_unroll]] for (uint i = 0; i < kept; i += STRETCH) {
        [[unroll]] for (uint j = 0; j < STRETCH; j++) rest += weights[i + j];
    }
    rest *= s.random;
    uint drawn = 0;
    [[dont_unroll]] for (uint i = 0; i < kept; i += STRETCH) {
        [[unroll]] for (uint j = 0; j < STRETCH; j++) {
            rest -= weights[i + j];
            if (rest >= 0) drawn++;
        }
    }
    return min(drawn, kept - 1);
}

void main() {
    const uint output_ = gl_WorkGroupID.y;
    if (output_ >= step_.outputCount) return;
    const Sampling s = samplings.at[output_];
    searchPart(output_, s);
    if (!arriveLast(output_, gl_NumWorkGroups.x)) return;
    // Asked for before it is needed, for it takes two trips to memory.
    const uint sequence = stepSequence(step_, stepOutputRow(step_, output_));
    const uint count = mergeParts(output_, s);
    const uint token = count == 0 ? 0 : sorted[drawToken(s, count)].y;
    if (gl_LocalInvocationID.x != 0) return;
    tokens.at[output_] = token;
    latest.at[sequence] = token;
}
