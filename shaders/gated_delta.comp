// The gated delta rule (Yang, Kautz & Hatamizadeh 2024, arXiv 2412.06464) along the rows of each
// sequence. Per head, with a state S of WIDTH keys × WIDTH value columns:
//     S ← g·S;  δ = β·(v - Sᵀk);  S ← S + k·δᵀ;  o = Sᵀq
// where q and k have length 1, q is scaled by 1/√WIDTH, β = sigmoid(beta) and
// g = exp(decay · softplus(alpha + offset)). LANES invocations share a column of S and keep it in
// registers through the rows; only two sums of a row depend on the row before, and the output comes
// from Sᵀq of the old state: o = g·Sᵀq + δ·(k·q). Grid: heads × column groups × runs.
//
// With CONVOLVE, in steps of one row, q, k and v come as their product left them: each workgroup does
// the short convolution in front of the rule (see short_conv.comp) for what it reads.
//
// With PREPARED, for many rows, keys and queries have their lengths already, and `terms` holds what does not
// depend on the state (delta_terms.comp).
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint WIDTH = 128;
layout(constant_id = 2) const uint LANES = 8;
// Value heads that share a key head are neighbours, and beta and alpha are one product in which the
// heads of a key head are [betas | alphas] (Qwen3-Next); else value head h has key head h modulo
// keyHeads, and beta and alpha stand apart.
layout(constant_id = 3) const bool GROUPED = false;
layout(constant_id = 4) const bool CONVOLVE = false;
layout(constant_id = 5) const uint PAST = 3;  // inputs that the convolution looks back on
layout(constant_id = 6) const bool PREPARED = false;
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s mixed;      // [rows, q of keyHeads | k of keyHeads | v of heads, WIDTH]
    Floats beta;        // [rows, heads]; GROUPED: [rows, keyHeads, 2, heads / keyHeads]
    Floats alpha;       // as beta
    Floats decay;       // [heads], below 0
    Floats offset;      // [heads]
    Float4sOut state;   // [sequences, heads, columns, keys]
    FloatsOut result;   // [rows, heads, WIDTH]
    Floats weight;      // [channels, PAST + 1], with CONVOLVE
    FloatsOut ring;     // see include/ring.glsl, with CONVOLVE
    Float4s terms;      // [rows, heads, g | β | k·q | 0], with PREPARED
    Step step_;
    uint heads;
    uint keyHeads;
    uint channels;      // of a row of `mixed`
    float epsilon;
};
#include "include/ring.glsl"
#include "include/delta_gates.glsl"

const uint COLUMNS = WORKGROUP / LANES;
const uint QUADS = WIDTH / 4 / LANES;

// What the next row brings to this invocation, loaded ahead of its turn.
vec4 nextQ[QUADS];
vec4 nextK[QUADS];
float nextV;
float nextBeta;
float nextAlpha;
vec4 nextTerms;

// With CONVOLVE: q, k and the columns of v of this workgroup.
const uint OWN_CHANNELS = 2 * WIDTH + COLUMNS;
shared float convolved[CONVOLVE ? OWN_CHANNELS : 1];

uint keyHeadOf(uint head) { return GROUPED ? head / (heads / keyHeads) : head % keyHeads; }

// The channel of a row that is the i-th of this workgroup.
uint channelOf(uint i, uint head) {
    if (i < WIDTH) return keyHeadOf(head) * WIDTH + i;
    if (i < 2 * WIDTH) return (keyHeads + keyHeadOf(head)) * WIDTH + i - WIDTH;
    return (2 * keyHeads + head) * WIDTH + gl_WorkGroupID.y * COLUMNS + i - 2 * WIDTH;
}

void convolve(uint row, uint head) {
    const uint sequence = stepSequence(step_, row);
    const uint position = stepPosition(step_, row);
    // Each channel is written by one of those that read it.
    const bool isFirst = GROUPED ? head % (heads / keyHeads) == 0 : head < keyHeads;
    const bool ownsKeys = isFirst && gl_WorkGroupID.y == 0;
    for (uint i = gl_LocalInvocationID.x; i < OWN_CHANNELS; i += WORKGROUP) {
        const uint channel = channelOf(i, head);
        const float newest = Floats(mixed).at[row * channels + channel];
        float sum = 0;
        [[unroll]] for (uint j = 0; j < PAST; j++) {
            sum += weight.at[channel * (PAST + 1) + j] * pastInput(ring, sequence, position, j, channel);
        }
        sum += weight.at[channel * (PAST + 1) + PAST] * newest;
        convolved[i] = sum / (1.0 + exp(-sum));
        if (i >= 2 * WIDTH || ownsKeys) ring.at[ringAt(sequence, position, channel)] = newest;
    }
    barrier();
}

vec4 convolvedQuad(uint i) {
    return vec4(convolved[i], convolved[i + 1], convolved[i + 2], convolved[i + 3]);
}

void loadNext(uint row, uint head, uint column, uint lane) {
    const uint sharing = heads / keyHeads;
    const uint keyHead = keyHeadOf(head);
    const uint base = row * channels / 4;
    const uint q = base + keyHead * (WIDTH / 4) + lane;
    const uint k = q + keyHeads * (WIDTH / 4);
    [[unroll]] for (uint i = 0; i < QUADS; i++) {
        nextQ[i] = CONVOLVE ? convolvedQuad(4 * (lane + i * LANES)) : mixed.at[q + i * LANES];
        nextK[i] = CONVOLVE ? convolvedQuad(WIDTH + 4 * (lane + i * LANES)) : mixed.at[k + i * LANES];
    }
    nextV = CONVOLVE ? convolved[2 * WIDTH + column % COLUMNS]
                     : mixed.at[base + (2 * keyHeads + head) * (WIDTH / 4) + column / 4][column % 4];
    if (PREPARED) {
        nextTerms = terms.at[row * heads + head];
        return;
    }
    const uint at = GROUPED ? 2 * (row * heads + keyHead * sharing) + head % sharing : row * heads + head;
    nextBeta = beta.at[at];
    nextAlpha = alpha.at[GROUPED ? at + sharing : at];
}

// Adds a row to the state with keys and queries as they come; returns its share of the output.
float addRow(inout vec4 s[QUADS], vec4 q[QUADS], vec4 k[QUADS], float v, float keep, float write) {
    float sk = 0, sq = 0, kk = 0, qq = 0, kq = 0;
    [[unroll]] for (uint i = 0; i < QUADS; i++) {
        sk += dot(s[i], k[i]);
        sq += dot(s[i], q[i]);
        kk += dot(k[i], k[i]);
        qq += dot(q[i], q[i]);
        kq += dot(k[i], q[i]);
    }
    sk = clusterSum(sk, LANES);
    sq = clusterSum(sq, LANES);
    kk = clusterSum(kk, LANES);
    qq = clusterSum(qq, LANES);
    kq = clusterSum(kq, LANES);
    const float keyScale = 1.0 / max(sqrt(kk), epsilon);
    const float queryScale = 1.0 / (max(sqrt(qq), epsilon) * sqrt(float(WIDTH)));
    // δ · |k|⁻¹, for k itself is not scaled.
    const float delta = write * (v - keep * sk * keyScale) * keyScale;
    [[unroll]] for (uint i = 0; i < QUADS; i++) s[i] = keep * s[i] + delta * k[i];
    return (keep * sq + delta * kq) * queryScale;
}

// The same with PREPARED.
float addPreparedRow(inout vec4 s[QUADS], vec4 q[QUADS], vec4 k[QUADS], float v, vec4 own) {
    float sk = 0, sq = 0;
    [[unroll]] for (uint i = 0; i < QUADS; i++) {
        sk += dot(s[i], k[i]);
        sq += dot(s[i], q[i]);
    }
    sk = clusterSum(sk, LANES);
    sq = clusterSum(sq, LANES);
    const float keep = own.x;
    const float delta = own.y * (v - keep * sk);
    [[unroll]] for (uint i = 0; i < QUADS; i++) s[i] = keep * s[i] + delta * k[i];
    return keep * sq + delta * own.z;
}

void main() {
    const uint run = gl_WorkGroupID.z;
    if (run >= step_.runCount) return;
    const uint first = stepRunFirst(step_, run);
    const uint end = stepRunEnd(step_, run);
    const uint head = gl_WorkGroupID.x;
    const uint lane = gl_LocalInvocationID.x % LANES;
    const uint column = gl_WorkGroupID.y * COLUMNS + gl_LocalInvocationID.x / LANES;
    const uint base = ((stepSequence(step_, first) * heads + head) * WIDTH + column) * (WIDTH / 4) + lane;
    const float headDecay = decay.at[head];
    const float headOffset = offset.at[head];
    // A sequence that begins has no past, whatever an earlier one left there.
    const bool begins = stepPosition(step_, first) == 0;
    vec4 s[QUADS];
    [[unroll]] for (uint i = 0; i < QUADS; i++) s[i] = begins ? vec4(0) : state.at[base + i * LANES];

    if (CONVOLVE) convolve(first, head);
    loadNext(first, head, column, lane);
    for (uint row = first; row < end; row++) {
        vec4 q[QUADS];
        vec4 k[QUADS];
        [[unroll]] for (uint i = 0; i < QUADS; i++) {
            q[i] = nextQ[i];
            k[i] = nextK[i];
        }
        const float v = nextV;
        const vec4 own = nextTerms;
        const float write = writtenShare(nextBeta);
        const float keep = keptShare(nextAlpha, headDecay, headOffset);
        loadNext(min(row + 1, end - 1), head, column, lane);
        const float value = PREPARED ? addPreparedRow(s, q, k, v, own) : addRow(s, q, k, v, keep, write);
        if (lane == 0) result.at[(row * heads + head) * WIDTH + column] = value;
    }
    [[unroll]] for (uint i = 0; i < QUADS; i++) state.at[base + i * LANES] = s[i];
}
