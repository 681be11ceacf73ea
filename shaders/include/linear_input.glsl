// The activations of a linear layer: normalized into shared memory, or as they were prepared.
#ifdef ACTIVATION_int8
shared uint inputCodes[NORM ? WIDTH / 4 : 1];
shared vec2 inputSteps[NORM ? WIDTH / 16 : 1];
#else
shared vec4 inputValues[NORM ? WIDTH / 4 : 1];
#endif

const uint INVOCATION_QUADS = (WIDTH / 4 + WORKGROUP - 1) / WORKGROUP;

// x / sqrt(mean(x²) + ε) · weight of one row. Eight neighbours hold a block of 32 values.
void prepareInput(uint column) {
    if (!NORM) return;
    const uint row = (flags & OUTPUTS) != 0 ? stepOutputRow(step_, column) : column;
    vec4 values[INVOCATION_QUADS];
    float squares = 0;
    [[unroll]] for (uint i = 0; i < INVOCATION_QUADS; i++) {
        const uint quad = gl_LocalInvocationID.x + i * WORKGROUP;
        values[i] = quad < WIDTH / 4 ? x.at[row * (WIDTH / 4) + quad] : vec4(0);
        squares += dot(values[i], values[i]);
    }
    const float scale = inversesqrt(workgroupSum(squares) / float(WIDTH) + epsilon);
    [[unroll]] for (uint i = 0; i < INVOCATION_QUADS; i++) {
        const uint quad = gl_LocalInvocationID.x + i * WORKGROUP;
        const vec4 weight = quad < WIDTH / 4 ? Float4s(aside).at[quad] : vec4(0);
        const vec4 normed = values[i] * scale * weight;
#ifdef ACTIVATION_int8
        const QuadCodes result = quantizeQuad(normed);
        if (quad < WIDTH / 4) {
            inputCodes[quad] = result.codes;
            if (quad % 4 == 0) inputSteps[quad / 4] = result.run;
        }
#else
        if (quad < WIDTH / 4) inputValues[quad] = normed;
#endif
    }
    barrier();
}

void loadActivation(uint column, uint u, out ActivationUnit a) {
    const uint first = (u / BLOCK_UNITS) * BLOCK_VALUES;
    const uint unit = u % BLOCK_UNITS;
#ifdef ACTIVATION_int8
    [[unroll]] for (uint run = 0; run < UNIT_RUNS; run++) {
        const uint run16 = (first + quadColumn(unit, 4 * run)) / 16;
        if (NORM) {
            a.codes[run] = uvec4(inputCodes[4 * run16], inputCodes[4 * run16 + 1],
                                 inputCodes[4 * run16 + 2], inputCodes[4 * run16 + 3]);
            a.steps[run] = inputSteps[run16];
        } else {
            a.codes[run] = Uint4s(x).at[column * (WIDTH / 16) + run16];
            a.steps[run] = aside.at[column * (WIDTH / 16) + run16];
        }
    }
#else
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
        const uint quad = (first + quadColumn(unit, q)) / 4;
        if (NORM) a.values[q] = inputValues[quad];
        else a.values[q] = x.at[column * (WIDTH / 4) + quad];
    }
#endif
}

// Adds the products of one unit of weights with the activations of each column.
void addProducts(Weights w, uint block, uint unit, ActivationUnit a[COLUMNS],
                 inout float sums[COLUMNS]) {
#ifdef ACTIVATION_int8
    uint codes[UNIT_QUADS];
    vec2 affines[UNIT_RUNS];
    unpackCodes(w, block, unit, codes, affines);
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) sums[c] += unitProduct(codes, affines, a[c]);
#else
    vec4 weights[UNIT_QUADS];
    unpack(w, block, unit, weights);
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) sums[c] += unitProduct(weights, a[c]);
#endif
}
