// The gated activation f(gate) · up of a feed-forward block, by ACTIVATION, which the including
// file defines: SiLU (Shazeer 2020), GELU in its tanh form (Hendrycks & Gimpel 2016), or gpt-oss's,
// which clamps both sides and lets the other one through (OpenAI 2025, arXiv 2508.10925).
const uint SILU = 0;
const uint GELU = 1;
const uint CLAMPED = 2;

float activated(float gate, float up) {
    if (ACTIVATION == CLAMPED) {
        const float g = min(gate, 7.0);
        return g / (1.0 + exp(-1.702 * g)) * (clamp(up, -7.0, 7.0) + 1.0);
    }
    // 1 + tanh(z / 2) = 2 / (1 + exp(-z)), which needs no tanh and ends in no ∞ / ∞.
    const float z = ACTIVATION == GELU ? 1.5957691216057308 * gate * (1.0 + 0.044715 * gate * gate) : gate;
    return gate / (1.0 + exp(-z)) * up;
}
