// Loops for ever. The kernel's timer on CPU time ends the process.
while (true) {}
