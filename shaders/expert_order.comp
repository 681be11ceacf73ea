// Sorts the choices of a step by expert, and cuts what each expert got into tiles of at most TILE
// choices of that expert alone (see include/expert_order.glsl). The order within an expert is left to
// chance, for nothing depends on it: each choice has a place of its own for what comes out. One workgroup.
#version 460
#include "include/memory.glsl"
#include "include/step.glsl"
#include "include/choices.glsl"
#include "include/expert_order.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 256;
layout(constant_id = 1) const uint EXPERTS = 128;
layout(constant_id = 2) const uint TILE = 16;

layout(push_constant, std430) uniform Parameters {
    Uints choices;   // see include/choices.glsl
    UintsOut order;
    Step step_;
    uint slots;
    uint tileCapacity;
};

shared uint counts[EXPERTS];
// The next free place of each expert.
shared uint places[EXPERTS];

uint expertOf(uint choice) { return min(choices.at[choiceAt(0, choice, slots)], EXPERTS - 1); }

void main() {
    const uint count = step_.rowCount * slots;
    const uint self = gl_LocalInvocationID.x;
    for (uint e = self; e < EXPERTS; e += WORKGROUP) counts[e] = 0;
    barrier();
    for (uint choice = self; choice < count; choice += WORKGROUP) atomicAdd(counts[expertOf(choice)], 1);
    barrier();
    for (uint e = self; e < EXPERTS; e += WORKGROUP) {
        uint first = 0;
        uint tile = 0;
        for (uint i = 0; i < e; i++) {
            first += counts[i];
            tile += (counts[i] + TILE - 1) / TILE;
        }
        places[e] = first;
        for (uint done = 0; done < counts[e]; done += TILE) {
            order.at[tileAt(tile)] = first + done;
            order.at[tileAt(tile) + 1] = e | min(counts[e] - done, TILE) << 16;
            tile++;
        }
        if (e == EXPERTS - 1) order.at[0] = tile;
        if (e == 0) order.at[1] = tileCapacity;
    }
    barrier();
    for (uint choice = self; choice < count; choice += WORKGROUP) {
        order.at[placeAt(atomicAdd(places[expertOf(choice)], 1), tileCapacity)] = choice;
    }
}
