// BF16: the upper half of an F32, eight values in 16 bytes.
#define PLAIN_VALUES
#define BLOCK_VALUES 8
#define UNIT_VALUES 8

uint quadColumn(uint unit, uint quad) { return 4 * quad; }

void unpack(Weights w, uint block, uint unit, out vec4 values[2]) {
    const uvec4 words = w.q.at[block];
    const vec4 low = uintBitsToFloat(words << 16);
    const vec4 high = uintBitsToFloat(words & 0xFFFF0000u);
    values[0] = vec4(low.x, high.x, low.y, high.y);
    values[1] = vec4(low.z, high.z, low.w, high.w);
}
