// Buffers by address. Kernels take addresses in their push constants instead of descriptors, so
// that nothing limits the size of a buffer and a recorded program needs no bindings.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Uint4s { uvec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Uint2s { uvec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Uints { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Float4s { vec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Float2s { vec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float at[]; };

layout(buffer_reference, std430, buffer_reference_align = 4) buffer UintsOut { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Uint2sOut { uvec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Float4sOut { vec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Float2sOut { vec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer FloatsOut { float at[]; };

// Of workgroups that are done (arrival.glsl); zero between dispatches.
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Counters { uint at[]; };
