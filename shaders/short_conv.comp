// The short convolution in front of a recurrent layer, with SiLU: y[t, c] = silu(Σᵢ weight[c, i] ·
// u[t - PAST + i, c]) along the rows of each sequence. With GATED, a layer of its own: a row of u
// holds b, g and v, and y[t, c] = g[t, c] · Σᵢ weight[c, i] · (b ⊙ v)[t - PAST + i, c]. What comes
// before the rows of a step is kept as state (see include/ring.glsl). One invocation a channel and row;
// the first PAST rows of a run belong to one invocation, which alone touches the state, so that no
// other can read it too late.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint PAST = 3;
layout(constant_id = 2) const bool GATED = false;

layout(push_constant, std430) uniform Parameters {
    Floats u;         // [rows, channels], or [rows, 3, channels] with GATED
    Floats weight;    // [channels, PAST + 1], the newest input's last
    FloatsOut y;      // [rows, channels]
    FloatsOut state;  // [sequences, PAST + 1, channels]
    Step step_;
    uint channels;
    uint runCapacity; // workgroups in y up to here take heads of runs, the others rows
};

#include "include/ring.glsl"

float inputAt(uint row, uint channel) {
    if (!GATED) return u.at[row * channels + channel];
    return u.at[3 * row * channels + channel] * u.at[(3 * row + 2) * channels + channel];
}

float outputOf(float sum, uint row, uint channel) {
    return GATED ? sum * u.at[(3 * row + 1) * channels + channel] : sum / (1.0 + exp(-sum));
}

void convolveRow(uint row, uint channel) {
    if (row >= step_.rowCount || row < PAST) return;
    if (stepSequence(step_, row - PAST) != stepSequence(step_, row)) return;
    float sum = 0;
    for (uint i = 0; i <= PAST; i++) {
        sum += weight.at[channel * (PAST + 1) + i] * inputAt(row - PAST + i, channel);
    }
    y.at[row * channels + channel] = outputOf(sum, row, channel);
}

void convolveHead(uint run, uint channel) {
    if (run >= step_.runCount) return;
    const uint first = stepRunFirst(step_, run);
    const uint end = stepRunEnd(step_, run);
    const uint sequence = stepSequence(step_, first);
    const uint position = stepPosition(step_, first);
    float past[PAST];
    [[unroll]] for (uint i = 0; i < PAST; i++) {
        past[i] = pastInput(state, sequence, position, i, channel);
    }
    for (uint row = first; row < min(end, first + PAST); row++) {
        const float newest = inputAt(row, channel);
        // In the order of the other rows: where a text was cut must not show.
        float sum = 0;
        [[unroll]] for (uint i = 0; i < PAST; i++) sum += weight.at[channel * (PAST + 1) + i] * past[i];
        sum += weight.at[channel * (PAST + 1) + PAST] * newest;
        y.at[row * channels + channel] = outputOf(sum, row, channel);
        [[unroll]] for (uint i = 0; i + 1 < PAST; i++) past[i] = past[i + 1];
        past[PAST - 1] = newest;
    }
    for (uint row = end - min(end - first, PAST + 1); row < end; row++) {
        state.at[ringAt(sequence, position + row - first, channel)] = inputAt(row, channel);
    }
}

void main() {
    const uint channel = gl_GlobalInvocationID.x;
    if (channel >= channels) return;
    const uint part = gl_WorkGroupID.y;
    if (part < runCapacity) convolveHead(part, channel);
    else convolveRow(part - runCapacity, channel);
}
