// Takes memory until there is none.
const taken = [];
for (;;) taken.push(new Uint8Array(8 << 20));
