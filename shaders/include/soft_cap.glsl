// cap · tanh(x / cap), which leaves small values alone and never exceeds ±cap (Gemma Team 2024,
// arXiv 2408.00118, section 2). Through exp of a negative number: drivers' tanh may give ∞ / ∞.
float softCap(float x, float cap) {
    const float e = exp(-2.0 * abs(x) / cap);
    return sign(x) * cap * (1.0 - e) / (1.0 + e);
}
