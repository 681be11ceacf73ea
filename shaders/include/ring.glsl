// The inputs of a short convolution that later rows look back on: [sequences, PAST + 1, channels], the
// input of position p in the place p modulo PAST + 1. So the newest one may be written while others
// still read those before it. The including file defines PAST and the parameter `channels`.
uint ringAt(uint sequence, uint position, uint channel) {
    return (sequence * (PAST + 1) + position % (PAST + 1)) * channels + channel;
}

// The i-th of the PAST inputs before a position. A sequence that begins has no past, whatever an
// earlier one left there.
float pastInput(FloatsOut state, uint sequence, uint position, uint i, uint channel) {
    if (position + i < PAST) return 0;
    return state.at[ringAt(sequence, position + i - PAST, channel)];
}
