// Leaves a mark where the next call could find it. Every call has a process of its own, so none does.
const seen = globalThis.mark ?? Array.prototype.mark ?? null;
globalThis.mark = Array.prototype.mark = "left by an earlier call";
return { seen };
