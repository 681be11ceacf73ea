// What changes from step to step: which rows there are, and of each its token, position and
// sequence. Written by the host before a program is submitted; the layout is that of
// src/kernels/step.ts.
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Step {
    uint rowCount;
    uint outputCount;
    uint rowCapacity;
    uint tableStride;  // block table entries a sequence
    uint data[];       // tokens, positions, sequences, output rows: rowCapacity each; then the block tables
};

uint stepToken(Step s, uint row) { return s.data[row]; }
uint stepPosition(Step s, uint row) { return s.data[s.rowCapacity + row]; }
uint stepSequence(Step s, uint row) { return s.data[2 * s.rowCapacity + row]; }
uint stepOutputRow(Step s, uint output_) { return s.data[3 * s.rowCapacity + output_]; }

// The cache slot of a position: blocks of a sequence need not be neighbours.
uint stepBlock(Step s, uint sequence, uint index) {
    return s.data[4 * s.rowCapacity + sequence * s.tableStride + index];
}
