// What of the gated delta rule (gated_delta.comp) does not depend on the state, for many rows: keys and queries
// are divided by their lengths where they are, queries by √WIDTH as well, and of each row and head leave g, β and
// k·q. One workgroup a key head and row.
// @variant REDUCTION: subgroup shared
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 1) const uint WIDTH = 128;
layout(constant_id = 2) const bool GROUPED = false;  // see gated_delta.comp
#include "include/reduce.glsl"

layout(push_constant, std430) uniform Parameters {
    Float4sOut mixed;   // [rows, q of keyHeads | k of keyHeads | v of heads, WIDTH]
    Floats beta;        // [rows, heads]; GROUPED: [rows, keyHeads, 2, heads / keyHeads]
    Floats alpha;       // as beta
    Floats decay;       // [heads], below 0
    Floats offset;      // [heads]
    Float4sOut terms;   // [rows, heads, g | β | k·q | 0]
    Step step_;
    uint heads;
    uint keyHeads;
    uint channels;      // of a row of `mixed`
    float epsilon;
};
#include "include/delta_gates.glsl"

void main() {
    const uint row = gl_WorkGroupID.y;
    if (row >= step_.rowCount) return;
    const uint keyHead = gl_WorkGroupID.x;
    const uint q = (row * channels + keyHead * WIDTH) / 4;
    const uint k = q + keyHeads * (WIDTH / 4);
    float kk = 0, qq = 0, kq = 0;
    for (uint i = gl_LocalInvocationID.x; i < WIDTH / 4; i += WORKGROUP) {
        kk += dot(mixed.at[k + i], mixed.at[k + i]);
        qq += dot(mixed.at[q + i], mixed.at[q + i]);
        kq += dot(mixed.at[k + i], mixed.at[q + i]);
    }
    const float keyScale = 1.0 / max(sqrt(workgroupSum(kk)), epsilon);
    const float queryScale = 1.0 / (max(sqrt(workgroupSum(qq)), epsilon) * sqrt(float(WIDTH)));
    kq = workgroupSum(kq) * keyScale * queryScale;
    for (uint i = gl_LocalInvocationID.x; i < WIDTH / 4; i += WORKGROUP) {
        mixed.at[k + i] *= keyScale;
        mixed.at[q + i] *= queryScale;
    }
    const uint sharing = heads / keyHeads;
    for (uint i = gl_LocalInvocationID.x; i < sharing; i += WORKGROUP) {
        const uint head = GROUPED ? keyHead * sharing + i : keyHead + i * keyHeads;
        const uint at = GROUPED ? 2 * (row * heads + keyHead * sharing) + i : row * heads + head;
        const float keep = keptShare(alpha.at[GROUPED ? at + sharing : at], decay.at[head], offset.at[head]);
        terms.at[row * heads + head] = vec4(keep, writtenShare(beta.at[at]), kq, 0);
    }
}
