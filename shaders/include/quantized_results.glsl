// Results of a workgroup that leave as codes and steps for the next product. The including file
// defines COLUMNS, QUANTIZE, WORKGROUP_ROWS (results of a workgroup, a multiple of 32 with QUANTIZE), y,
// ySteps and rows.
shared float results[QUANTIZE ? COLUMNS * WORKGROUP_ROWS : 1];

// One invocation a word; all of a block look at the whole block, so that nothing is exchanged.
// `first`: where the column's results begin.
void quantizeResults(uint column, uint first) {
#ifdef ACTIVATION_int8
    const uint firstRow = gl_WorkGroupID.x * WORKGROUP_ROWS;
    for (uint word = gl_LocalInvocationID.x; word < WORKGROUP_ROWS / 4; word += WORKGROUP) {
        const uint block = first + word / 8 * 32;
        float largest = 0;
        for (uint i = 0; i < 32; i++) largest = max(largest, abs(results[block + i]));
        const float step32 = stepOf(largest);
        const float inverse = inverseOf(step32);
        const uint at = column * rows + firstRow + 4 * word;
        if (firstRow + 4 * word >= rows) break;
        ivec4 codes;
        int sum = 0;
        for (uint i = 0; i < 4; i++) {
            codes[i] = int(roundEven(results[first + 4 * word + i] * inverse));
        }
        UintsOut(y).at[at / 4] = packCodes(codes);
        if (word % 4 != 0) continue;
        for (uint i = 0; i < 16; i++) {
            sum += int(roundEven(results[first + 4 * word + i] * inverse));
        }
        ySteps.at[at / 16] = vec2(step32, step32 * float(sum));
    }
#endif
}
