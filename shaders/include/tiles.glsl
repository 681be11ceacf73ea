// Rows of halves in tiles, as matmul_direct.comp reads them: eight columns of all rows after another,
// [width / 8, capacity, 8], then a step a row. The values of a quad lie in the order 0 2 1 3.
const float HALF_MAX = 65504;

// Of a quad of columns, among pairs of words.
uint tiledQuad(uint row, uint quad, uint capacity) { return ((quad / 2) * capacity + row) * 2 + (quad & 1); }

uvec2 halfQuad(vec4 v) { return uvec2(packHalf2x16(v.xz), packHalf2x16(v.yw)); }

// For steps that were chosen without looking: what is too large becomes the largest, and no numbers stay such.
vec4 withinHalves(vec4 v) { return mix(v, sign(v) * HALF_MAX, greaterThan(abs(v), vec4(HALF_MAX))); }
