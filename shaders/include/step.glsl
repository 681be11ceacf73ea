// What changes from step to step: which rows there are, and of each its token, position and
// sequence. Written by the host before a program is submitted; the layout is that of
// src/kernels/step.ts.
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Step {
    uint rowCount;
    uint outputCount;
    uint rowCapacity;
    uint tableStride;  // block table entries a sequence
    uint runCount;     // runs of rows of one sequence
    uint data[];       // tokens, positions, sequences, output rows, first rows of runs: rowCapacity
                       // each; then the block tables
};

// Stands for the token that was chosen last for the row's sequence; the host may not know it yet.
const uint LATEST_TOKEN = 0xFFFFFFFF;

uint stepToken(Step s, uint row) { return s.data[row]; }
uint stepPosition(Step s, uint row) { return s.data[s.rowCapacity + row]; }
uint stepSequence(Step s, uint row) { return s.data[2 * s.rowCapacity + row]; }
uint stepOutputRow(Step s, uint output_) { return s.data[3 * s.rowCapacity + output_]; }

// Rows of one sequence stand next to each other, in order of position: a run. What carries state
// from row to row goes through a run.
uint stepRunFirst(Step s, uint run) { return s.data[4 * s.rowCapacity + run]; }
uint stepRunEnd(Step s, uint run) { return run + 1 < s.runCount ? stepRunFirst(s, run + 1) : s.rowCount; }

// The cache slot of a position: blocks of a sequence need not be neighbours.
uint stepBlock(Step s, uint sequence, uint index) {
    return s.data[5 * s.rowCapacity + sequence * s.tableStride + index];
}
