// Cosine and sine of position · frequency for RoPE, exact far beyond what float angles allow: a
// frequency is a 64-bit fraction of a turn, so the angle is reduced by integer overflow. Drivers'
// own cos and sin are only promised to be good to 2^-11.
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Frequencies {
    uvec2 at[];  // low and high word of the turns a position, times 2^64
};

// (cosine, sine) after `position` steps of a frequency.
vec2 rotation(uint position, uvec2 frequency) {
    uint carry, low;
    umulExtended(position, frequency.x, carry, low);
    const uint turns = position * frequency.y + carry;
    const uint quarter = (turns + 0x20000000u) >> 30;
    precise const float a = float(int(turns - (quarter << 30))) * 1.4629180792671596e-9;  // 2π / 2^32
    precise const float b = a * a;
    // Taylor polynomials on ±π/4: errors below 4e-9.
    precise const float s = a * (1.0 + b * (-1.0 / 6 + b * (1.0 / 120 + b * (-1.0 / 5040 + b / 362880))));
    precise const float c = 1.0 + b * (-0.5 + b * (1.0 / 24 + b * (-1.0 / 720 + b * (1.0 / 40320 - b / 3628800))));
    const vec2 even = (quarter & 1) == 0 ? vec2(c, s) : vec2(-s, c);
    return (quarter & 2) == 0 ? even : -even;
}
