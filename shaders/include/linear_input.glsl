// The activations of a linear layer: normalized into shared memory, or as they were prepared.
#ifdef ACTIVATION_int8
shared uint inputCodes[NORM ? WIDTH / 4 : 1];
shared vec2 inputSteps[NORM ? WIDTH / 16 : 1];
#else
shared vec4 inputValues[NORM ? WIDTH / 4 : 1];
#endif

const uint INVOCATION_QUADS = (WIDTH / 4 + WORKGROUP - 1) / WORKGROUP;

void storeInput(uint quad, vec4 normed) {
#ifdef ACTIVATION_int8
    // Eight neighbours hold a block of 32 values.
    const QuadCodes result = quantizeQuad(normed);
    if (quad >= WIDTH / 4) return;
    inputCodes[quad] = result.codes;
    if (quad % 4 == 0) inputSteps[quad / 4] = result.run;
#else
    if (quad < WIDTH / 4) inputValues[quad] = normed;
#endif
}

// x / sqrt(mean(x²) + ε) · weight of one row, or of each of its heads with what gates it. A head's quads
// lie in neighbours.
void prepareInput(uint column) {
    if (!NORM) return;
    const uint row = (flags & OUTPUTS) != 0 ? stepOutputRow(step_, column) : column;
    vec4 values[INVOCATION_QUADS];
    vec4 gates[HEAD > 0 ? INVOCATION_QUADS : 1];
    float squares = 0;
    [[unroll]] for (uint i = 0; i < INVOCATION_QUADS; i++) {
        const uint quad = gl_LocalInvocationID.x + i * WORKGROUP;
        values[i] = quad < WIDTH / 4 ? x.at[row * (WIDTH / 4) + quad] : vec4(0);
        if (HEAD > 0) gates[i] = quad < WIDTH / 4 ? gate.at[row * (WIDTH / 4) + quad] : vec4(0);
        squares += dot(values[i], values[i]);
    }
    float scale = HEAD > 0 ? 0 : inversesqrt(workgroupSum(squares) / float(WIDTH) + epsilon);
    [[unroll]] for (uint i = 0; i < INVOCATION_QUADS; i++) {
        const uint quad = gl_LocalInvocationID.x + i * WORKGROUP;
        const uint at = HEAD > 0 ? quad % (HEAD / 4) : quad;
        vec4 weight = quad < WIDTH / 4 ? Float4s(aside).at[at] : vec4(0);
        if (HEAD > 0) {
            const float sum = clusterSum(dot(values[i], values[i]), HEAD / 4);
            scale = inversesqrt(sum / float(HEAD) + epsilon);
            weight *= gates[i] / (1.0 + exp(-gates[i]));
        }
        storeInput(quad, values[i] * scale * weight);
    }
    barrier();
}

#ifndef ACTIVATION_int8
vec4 activationQuad(uint column, uint u, uint q) {
    const uint quad = ((u / BLOCK_UNITS) * BLOCK_VALUES + quadColumn(u % BLOCK_UNITS, q)) / 4;
    return NORM ? inputValues[quad] : x.at[column * (WIDTH / 4) + quad];
}
#endif

void loadActivation(uint column, uint u, out ActivationUnit a) {
#ifdef ACTIVATION_int8
    const uint first = (u / BLOCK_UNITS) * BLOCK_VALUES;
    [[unroll]] for (uint run = 0; run < UNIT_RUNS; run++) {
        const uint run16 = (first + quadColumn(u % BLOCK_UNITS, 4 * run)) / 16;
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
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) a.values[q] = activationQuad(column, u, q);
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

// The same where the activations of all columns would fill the registers: the weights of all rows stay
// there, packed as they are, and activations pass by. `last`: the last column that there is.
void addPassingProducts(uint rowBlocks[ROWS], uint u, uint firstColumn, uint last,
                        inout float sums[ROWS][COLUMNS], inout float upSums[ROWS][COLUMNS]) {
    WeightUnit weights[ROWS];
    WeightUnit upWeights[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        const uint block = rowBlocks[r] + u / BLOCK_UNITS;
        loadWeights(w, block, u % BLOCK_UNITS, weights[r]);
        if (GATED) loadWeights(up, block, u % BLOCK_UNITS, upWeights[r]);
    }
#ifdef ACTIVATION_int8
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        ActivationUnit a;
        loadActivation(min(firstColumn + c, last), u, a);
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            sums[r][c] += unitProduct(weights[r].codes, weights[r].affines, a);
            if (!GATED) continue;
            upSums[r][c] += unitProduct(upWeights[r].codes, upWeights[r].affines, a);
        }
    }
#else
    vec4 products[ROWS][COLUMNS];
    vec4 upProducts[ROWS][COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) {
        products[i / COLUMNS][i % COLUMNS] = vec4(0);
        upProducts[i / COLUMNS][i % COLUMNS] = vec4(0);
    }
    [[unroll]] for (uint q = 0; q < UNIT_QUADS; q++) {
        [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) {
            const uint r = i / COLUMNS;
            const uint c = i % COLUMNS;
            const vec4 a = activationQuad(min(firstColumn + c, last), u, q);
            products[r][c] += weightQuad(weights[r], q) * a;
            if (GATED) upProducts[r][c] += weightQuad(upWeights[r], q) * a;
        }
    }
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) {
        const vec4 p = products[i / COLUMNS][i % COLUMNS];
        const vec4 upP = upProducts[i / COLUMNS][i % COLUMNS];
        sums[i / COLUMNS][i % COLUMNS] += (p.x + p.y) + (p.z + p.w);
        upSums[i / COLUMNS][i % COLUMNS] += (upP.x + upP.y) + (upP.z + upP.w);
    }
#endif
}
