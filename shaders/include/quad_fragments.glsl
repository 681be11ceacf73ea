// Fragments that hold quads (src/kernels/fragments.ts), filled from those that an invocation has: of two rows
// of weights, or of two columns of activations. The including file defines FRAGMENT_COLUMNS: 16, or 8 with
// one column each.
WeightFragment weightFragment(uvec2 above, uvec2 below) {
    const f16vec2 a = unpackFloat2x16(above.x);
    const f16vec2 b = unpackFloat2x16(above.y);
    const f16vec2 c = unpackFloat2x16(below.x);
    const f16vec2 d = unpackFloat2x16(below.y);
    WeightFragment fragment;
    fragment[0] = a.x;
    fragment[1] = a.y;
    fragment[2] = b.x;
    fragment[3] = b.y;
    fragment[4] = c.x;
    fragment[5] = c.y;
    fragment[6] = d.x;
    fragment[7] = d.y;
    return fragment;
}

InputFragment inputFragment(uvec2 left, uvec2 right) {
    const f16vec2 a = unpackFloat2x16(left.x);
    const f16vec2 b = unpackFloat2x16(left.y);
    InputFragment fragment;
    fragment[0] = a.x;
    fragment[1] = a.y;
    fragment[2] = b.x;
    fragment[3] = b.y;
    if (FRAGMENT_COLUMNS == 16) {
        const f16vec2 c = unpackFloat2x16(right.x);
        const f16vec2 d = unpackFloat2x16(right.y);
        fragment[4] = c.x;
        fragment[5] = c.y;
        fragment[6] = d.x;
        fragment[7] = d.y;
    }
    return fragment;
}
