// Sums and maxima over the invocations of a workgroup, or over clusters of LANES neighbours. With
// subgroup operations where the subgroup size is known, else through shared memory; the including
// file defines WORKGROUP.
#ifdef REDUCTION_subgroup
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require

shared float subgroupPartial[128];

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

float clusterSum(float value, const uint lanes) {
    const uint self = gl_LocalInvocationID.x;
    barrier();
    reducePartial[self] = value;
    barrier();
    for (uint step_ = lanes / 2; step_ > 0; step_ /= 2) {
        if (self % lanes < step_) reducePartial[self] += reducePartial[self + step_];
        barrier();
    }
    return reducePartial[self - self % lanes];
}

float clusterMax(float value, const uint lanes) {
    const uint self = gl_LocalInvocationID.x;
    barrier();
    reducePartial[self] = value;
    barrier();
    for (uint step_ = lanes / 2; step_ > 0; step_ /= 2) {
        if (self % lanes < step_) {
            reducePartial[self] = max(reducePartial[self], reducePartial[self + step_]);
        }
        barrier();
    }
    return reducePartial[self - self % lanes];
}

float strideSum(float value, const uint stride, const uint lanes) {
    const uint self = gl_LocalInvocationID.x;
    barrier();
    reducePartial[self] = value;
    barrier();
    float sum = 0;
    for (uint i = self % stride; i < lanes; i += stride) sum += reducePartial[self - self % lanes + i];
    return sum;
}

float workgroupSum(float value) { return clusterSum(value, WORKGROUP); }
float workgroupMax(float value) { return clusterMax(value, WORKGROUP); }
#endif
