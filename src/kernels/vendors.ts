/** Vendors whose drivers or registers decide between variants, by their PCI numbers. */
export const nvidia = 0x10de;
