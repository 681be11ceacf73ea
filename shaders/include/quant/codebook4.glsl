// The 16 values of IQ4_NL and IQ4_XS, as signed bytes in four words.
#define SIGNED_CODES
const uint CODEBOOK[4] = uint[](0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);

// Four 4-bit indices, one in each byte, to their values.
uint codebookValues(uint indices) {
    uint values = 0;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        const uint index = (indices >> (8 * i)) & 15;
        values |= ((CODEBOOK[index / 4] >> (8 * (index & 3))) & 0xFF) << (8 * i);
    }
    return values;
}
