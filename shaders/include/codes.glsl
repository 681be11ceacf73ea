// Floats → 8-bit codes in blocks of 32 values with a common step: eight neighbouring invocations hold a
// block, four a run of 16.
float stepOf(float largest) { return largest / 127.0; }
float inverseOf(float step32) { return step32 == 0 ? 0 : 1 / step32; }

uint packCodes(ivec4 c) {
    return uint(c.x & 0xFF) | (uint(c.y & 0xFF) << 8) | (uint(c.z & 0xFF) << 16) | (uint(c.w) << 24);
}

struct QuadCodes {
    uint codes;
    vec2 run;  // step, step · sum of the run's codes
};

// To be called by all invocations of a workgroup together.
QuadCodes quantizeQuad(vec4 value) {
    const vec4 magnitudes = abs(value);
    const float own = max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
    const float step32 = stepOf(clusterMax(own, 8));
    const ivec4 codes = ivec4(roundEven(value * inverseOf(step32)));
    const float sum = clusterSum(float(codes.x + codes.y + codes.z + codes.w), 4);
    return QuadCodes(packCodes(codes), vec2(step32, step32 * sum));
}
