// Workgroups that share some work count how many of them are done: the last puts together what all found.
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Counters { uint at[]; };

shared uint arrival;

// Whether this workgroup is the last of `count`; it then sees what the others wrote. The counter is zero
// before and behind. All invocations come here together.
bool arriveLast(Counters counters, uint counter, uint count) {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0) arrival = atomicAdd(counters.at[counter], 1);
    barrier();
    if (arrival + 1 < count) return false;
    memoryBarrierBuffer();
    if (gl_LocalInvocationID.x == 0) counters.at[counter] = 0;
    return true;
}
