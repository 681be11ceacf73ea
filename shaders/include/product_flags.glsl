// What a product does besides multiplying; bits of the parameter `flags` (Flag in
// src/kernels/product-flags.ts).
const uint HAS_BIAS = 1;
const uint ACCUMULATE = 2;  // add to what is there: the residual stream
const uint OUTPUTS = 4;     // columns are the step's output rows, not all its rows
const uint SWITCHED = 8;    // times the sigmoid of the column's `rowSwitch`

uint productColumns(Step s) { return (flags & OUTPUTS) != 0 ? s.outputCount : s.rowCount; }

void storeProduct(uint row, uint column, float sum) {
    const uint at = column * rows + row;
    if ((flags & HAS_BIAS) != 0) sum += bias.at[row];
    if ((flags & SWITCHED) != 0) sum /= 1.0 + exp(-rowSwitch.at[column]);
    if ((flags & ACCUMULATE) != 0) sum += y.at[at];
    y.at[at] = sum;
}
