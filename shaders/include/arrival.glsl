// Workgroups that share some work count how many of them are done: the last puts together what all found.
// The including file has the counters as its parameter `counters`, and includes this late: a word that comes
// first in shared memory puts everything else off, and the code for AMD grows by a twentieth.
shared uint arrival;

// Whether this workgroup is the last of `count`; it then sees what the others wrote. All invocations come
// here together.
bool arriveLast(uint counter, uint count) {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0) arrival = atomicAdd(counters.at[counter], 1);
    barrier();
    if (arrival + 1 < count) return false;
    memoryBarrierBuffer();
    if (gl_LocalInvocationID.x == 0) counters.at[counter] = 0;
    return true;
}
