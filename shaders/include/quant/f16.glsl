// F16: IEEE half precision, eight values in 16 bytes.
#define PLAIN_VALUES
#define BLOCK_VALUES 8
#define UNIT_VALUES 8

uint quadColumn(uint unit, uint quad) { return 4 * quad; }

void unpack(Weights w, uint block, uint unit, out vec4 values[2]) {
    const uvec4 words = w.q.at[block];
    values[0] = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    values[1] = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
}
