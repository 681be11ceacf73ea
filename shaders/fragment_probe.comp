// What each invocation of a subgroup of 32 holds of the operands of matrix units: which values of a matrix
// that counts its elements, up to eight of weights [16, 16], and of activations [16, 16] and [16, 8].
#version 460
#include "include/memory.glsl"
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require

layout(local_size_x = 32) in;

layout(push_constant, std430) uniform Parameters {
    FloatsOut y;  // [3, 32, 9]: the number of values, then these
};

const uint HELD = 8;

// [row or column, depth]
shared float16_t counted[256];

#define WRITE(fragment, kind)                                             \
    {                                                                     \
        const uint at = (kind * 32 + gl_LocalInvocationIndex) * (HELD + 1); \
        y.at[at] = fragment.length();                                     \
        for (uint i = 0; i < min(HELD, fragment.length()); i++) y.at[at + 1 + i] = float(fragment[i]); \
    }

void main() {
    for (uint i = gl_LocalInvocationIndex; i < 256; i += 32) counted[i] = float16_t(i);
    barrier();
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> weights;
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> inputs;
    coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB> fewInputs;
    coopMatLoad(weights, counted, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(inputs, counted, 0, 16, gl_CooperativeMatrixLayoutColumnMajor);
    coopMatLoad(fewInputs, counted, 0, 16, gl_CooperativeMatrixLayoutColumnMajor);
    WRITE(weights, 0)
    WRITE(inputs, 1)
    WRITE(fewInputs, 2)
}
