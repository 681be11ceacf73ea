// Sums and maxima over the invocations of a workgroup, or over clusters of LANES neighbours. With
// subgroup operations where the subgroup size is known, else through shared memory; the including
// file defines WORKGROUP.
#ifdef REDUCTION_subgroup
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require

shared float subgroupPartial[128];
shared vec2 subgroupPairs[128];

float workgroupSum(float value) {
    value = subgroupAdd(value);
    if (gl_NumSubgroups == 1) return value;
    barrier();
    if (subgroupElect()) subgroupPartial[gl_SubgroupID] = value;
    barrier();
    float total = 0;
    for (uint i = 0; i < gl_NumSubgroups; i++) total += subgroupPartial[i];
    return total;
}

float workgroupMax(float value) {
    value = subgroupMax(value);
    if (gl_NumSubgroups == 1) return value;
    barrier();
    if (subgroupElect()) subgroupPartial[gl_SubgroupID] = value;
    barrier();
    float best = subgroupPartial[0];
    for (uint i = 1; i < gl_NumSubgroups; i++) best = max(best, subgroupPartial[i]);
    return best;
}

// The sum of the first and the largest of the second, in one round.
vec2 workgroupSumMax(float summand, float candidate) {
    const vec2 own = vec2(subgroupAdd(summand), subgroupMax(candidate));
    if (gl_NumSubgroups == 1) return own;
    barrier();
    if (subgroupElect()) subgroupPairs[gl_SubgroupID] = own;
    barrier();
    float sum = 0;
    float best = own.y;
    for (uint first = 0; first < gl_NumSubgroups; first += gl_SubgroupSize) {
        const uint i = first + gl_SubgroupInvocationID;
        const vec2 pair = subgroupPairs[min(i, gl_NumSubgroups - 1)];
        sum += i < gl_NumSubgroups ? pair.x : 0;
        best = max(best, pair.y);
    }
    return vec2(subgroupAdd(sum), subgroupMax(best));
}

float clusterSum(float value, const uint lanes) {
    for (uint step_ = lanes / 2; step_ > 0; step_ /= 2) value += subgroupShuffleXor(value, step_);
    return value;
}

float clusterMax(float value, const uint lanes) {
    for (uint step_ = lanes / 2; step_ > 0; step_ /= 2) {
        value = max(value, subgroupShuffleXor(value, step_));
    }
    return value;
}

// Over the lanes that are a multiple of `stride` apart.
float strideSum(float value, const uint stride, const uint lanes) {
    for (uint step_ = lanes / 2; step_ >= stride; step_ /= 2) {
        value += subgroupShuffleXor(value, step_);
    }
    return value;
}
#else
shared float reducePartial[WORKGROUP];

// Few barriers rather than few additions: software drivers split a shader at each of them, and take
// long to compile what has many. Clusters that are wider than this are folded to it before.
const uint FOLD = 32;

// Where the values of this invocation's cluster begin, once all are there.
uint shareValue(float value, const uint lanes) {
    const uint self = gl_LocalInvocationID.x;
    barrier();
    reducePartial[self] = value;
    barrier();
    return self - self % lanes;
}

// Over the lanes that are a multiple of `stride` apart.
float strideSum(float value, const uint stride, const uint lanes) {
    const uint first = shareValue(value, lanes);
    float sum = 0;
    [[dont_unroll]] for (uint i = gl_LocalInvocationID.x % stride; i < lanes; i += stride) {
        sum += reducePartial[first + i];
    }
    return sum;
}

float strideMax(float value, const uint stride, const uint lanes) {
    const uint first = shareValue(value, lanes);
    float best = value;
    [[dont_unroll]] for (uint i = gl_LocalInvocationID.x % stride; i < lanes; i += stride) {
        best = max(best, reducePartial[first + i]);
    }
    return best;
}

float clusterSum(float value, const uint lanes) {
    if (lanes <= FOLD) return strideSum(value, 1, lanes);
    return strideSum(strideSum(value, FOLD, lanes), 1, FOLD);
}

float clusterMax(float value, const uint lanes) {
    if (lanes <= FOLD) return strideMax(value, 1, lanes);
    return strideMax(strideMax(value, FOLD, lanes), 1, FOLD);
}

float workgroupSum(float value) { return clusterSum(value, WORKGROUP); }
float workgroupMax(float value) { return clusterMax(value, WORKGROUP); }
vec2 workgroupSumMax(float summand, float candidate) {
    return vec2(workgroupSum(summand), workgroupMax(candidate));
}
#endif
