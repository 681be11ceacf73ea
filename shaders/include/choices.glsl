// The experts of each row: [rows, slots, 2] words, an expert's number and the bits of its weight.
uint choiceAt(uint row, uint slot, uint slots) { return 2 * (row * slots + slot); }
