// The eight 6-bit scales and minima of Q4_K and Q5_K in 12 bytes: those of sub-blocks 2·unit and
// 2·unit + 1. Returns (scale, scale, minimum, minimum).
vec4 kScales(uvec3 packed_, uint unit) {
    const uint shift = 16 * (unit & 1);
    const uint a = packed_.x >> shift;
    const uint b = packed_.y >> shift;
    const uint c = packed_.z >> shift;
    const bool low = unit < 2;
    const uint scales = low ? a & 0x3F3F : (c & 0x0F0F) | ((a & 0xC0C0) >> 2);
    const uint minima = low ? b & 0x3F3F : ((c >> 4) & 0x0F0F) | ((b & 0xC0C0) >> 2);
    return vec4(scales & 0xFF, (scales >> 8) & 0xFF, minima & 0xFF, (minima >> 8) & 0xFF);
}
