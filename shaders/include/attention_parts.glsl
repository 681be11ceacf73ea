// Attention split over the keys: which keys a part covers, and where its unfinished result stands
// in the scratch buffer: [rows · heads, splits, maximum and total of the weights, then the weighted
// sum of values].
const uint PART_HEADER = 2;

uint partBase(uint head, uint split_, uint splits, uint headWidth) {
    return (head * splits + split_) * (headWidth + PART_HEADER);
}

// First key and end of the keys of a part: even shares in whole tiles, but none smaller than is
// worth a workgroup.
uvec2 attentionRange(uint position, uint window, uint split_, uint splits, uint tile) {
    const uint end = position + 1;
    const uint first = end > window ? end - window : 0;
    const uint share = max((end - first + splits - 1) / splits, splits == 1 ? 1 : 64);
    const uint size = (share + tile - 1) / tile * tile;
    const uint begin = min(first + split_ * size, end);
    return uvec2(begin, splits == 1 ? end : min(begin + size, end));
}
