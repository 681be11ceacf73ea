// The 16 values of IQ4_NL and IQ4_XS, as signed bytes in four words.
const uint CODEBOOK[4] = uint[](0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);

// Four 4-bit codes, one in each byte, to their values.
vec4 codebookValues(uint codes) {
    vec4 values;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        const uint code = (codes >> (8 * i)) & 15;
        values[i] = float(bitfieldExtract(int(CODEBOOK[code / 4]), int(8 * (code & 3)), 8));
    }
    return values;
}
