// Writes log lines to fill a disk.
for (;;) console.log("x".repeat(1000));
