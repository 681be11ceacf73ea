// The gates of the delta rule: how much of its value a row writes, and how much of the state it keeps.

// log(1 + eˣ), exact where eˣ overflows and where it vanishes.
float softplus(float x) { return max(x, 0.0) + log(1.0 + exp(-abs(x))); }

float writtenShare(float beta) { return 1.0 / (1.0 + exp(-beta)); }

float keptShare(float alpha, float decay, float offset) { return exp(decay * softplus(alpha + offset)); }
