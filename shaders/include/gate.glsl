// Activation functions of gated feed-forwards; numbers as in GateFunction of src/kernels/gate.ts.
const uint SILU = 1;
const uint GELU = 2;  // the tanh form (Hendrycks & Gimpel 2016)

float activate(float x, uint function_) {
    if (function_ == GELU) {
        // tanh(z) = 1 - 2 / (e^2z + 1), which cannot overflow into a NaN.
        const float z = 0.7978845608028654 * x * (1.0 + 0.044715 * x * x);
        return x * (1.0 - 1.0 / (exp(2.0 * z) + 1.0));
    }
    return x / (1.0 + exp(-x));
}
