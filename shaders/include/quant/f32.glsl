// F32: plain values, taken eight at a time.
#define PLAIN_VALUES
#define BLOCK_VALUES 8
#define UNIT_VALUES 8

uint quadColumn(uint unit, uint quad) { return 4 * quad; }

void unpack(Weights w, uint block, uint unit, out vec4 values[2]) {
    values[0] = uintBitsToFloat(w.q.at[2 * block]);
    values[1] = uintBitsToFloat(w.q.at[2 * block + 1]);
}
