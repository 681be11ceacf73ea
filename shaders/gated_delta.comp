// The gated delta rule (Yang, Kautz & Hatamizadeh 2024, arXiv 2412.06464) along the rows of each
// sequence. Per head, with a state S of WIDTH keys × WIDTH value columns:
//     S ← g·S;  δ = β·(v - Sᵀk);  S ← S + k·δᵀ;  o = Sᵀq
// where q and k have length 1, q is scaled by 1/√WIDTH, β = sigmoid(beta) and
// g = exp(decay · softplus(alpha + offset)). LANES invocations share a column of S and keep it in
// registers through the rows; only two sums of a row depend on the row before, and the output comes
// from Sᵀq of the old state: o = g·Sᵀq + δ·(k·q). Grid: heads × column groups × runs.
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
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4s mixed;      // [rows, q of keyHeads | k of keyHeads | v of heads, WIDTH]
    Floats beta;        // [rows, heads]; GROUPED: [rows, keyHeads, 2, heads / keyHeads]
    Floats alpha;       // as beta
    Floats decay;       // [heads], below 0
    Floats offset;      // [heads]
    Float4sOut state;   // [sequences, heads, columns, keys]
    FloatsOut result;   // [rows, heads, WIDTH]
    Step step_;
    uint heads;
    uint keyHeads;
    float epsilon;
};

const uint COLUMNS = WORKGROUP / LANES;
const uint QUADS = WIDTH / 4 / LANES;

// What the next row brings to this invocation, loaded ahead of its turn.
vec4 nextQ[QUADS];
vec4 nextK[QUADS];
float nextV;
float nextBeta;
float nextAlpha;

void loadNext(uint row, uint head, uint column, uint lane) {
    const uint sharing = heads / keyHeads;
    const uint keyHead = GROUPED ? head / sharing : head % keyHeads;
    const uint base = row * (2 * keyHeads + heads) * (WIDTH / 4);
    const uint q = base + keyHead * (WIDTH / 4) + lane;
    const uint k = q + keyHeads * (WIDTH / 4);
    [[unroll]] for (uint i = 0; i < QUADS; i++) {
        nextQ[i] = mixed.at[q + i * LANES];
        nextK[i] = mixed.at[k + i * LANES];
    }
    nextV = mixed.at[base + (2 * keyHeads + head) * (WIDTH / 4) + column / 4][column % 4];
    const uint at = GROUPED ? 2 * (row * heads + keyHead * sharing) + head % sharing : row * heads + head;
    nextBeta = beta.at[at];
    nextAlpha = alpha.at[GROUPED ? at + sharing : at];
}

// log(1 + eˣ), exact where eˣ overflows and where it vanishes.
float softplus(float x) { return max(x, 0.0) + log(1.0 + exp(-abs(x))); }

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

    loadNext(first, head, column, lane);
    for (uint row = first; row < end; row++) {
        vec4 q[QUADS];
        vec4 k[QUADS];
        [[unroll]] for (uint i = 0; i < QUADS; i++) {
            q[i] = nextQ[i];
            k[i] = nextK[i];
        }
        const float v = nextV;
        const float write = 1.0 / (1.0 + exp(-nextBeta));
        const float keep = exp(headDecay * softplus(nextAlpha + headOffset));
        loadNext(min(row + 1, end - 1), head, column, lane);
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
        if (lane == 0) {
            result.at[(row * heads + head) * WIDTH + column] = (keep * sq + delta * kq) * queryScale;
        }
    }
    [[unroll]] for (uint i = 0; i < QUADS; i++) state.at[base + i * LANES] = s[i];
}
