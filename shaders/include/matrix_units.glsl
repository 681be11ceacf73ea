// What products on matrix units share. The including file defines FRAGMENT_ROWS, FRAGMENT_COLUMNS and
// FRAGMENT_DEPTH.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

#define WeightFragment coopmat<float16_t, gl_ScopeSubgroup, FRAGMENT_ROWS, FRAGMENT_DEPTH, gl_MatrixUseA>
#define InputFragment coopmat<float16_t, gl_ScopeSubgroup, FRAGMENT_DEPTH, FRAGMENT_COLUMNS, gl_MatrixUseB>
#define SumFragment coopmat<float, gl_ScopeSubgroup, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator>

const int BY_ROWS = gl_CooperativeMatrixLayoutRowMajor;
const int BY_COLUMNS = gl_CooperativeMatrixLayoutColumnMajor;

// Orders what the invocations of a subgroup wrote to shared memory before what they read.
void subgroupOrder() {
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
}

// The step of a row of halves: see halve.comp.
float inputStep(uint column, uint width) { return uintBitsToFloat(x.at[(column * width + width / 2) / 4][0]); }
