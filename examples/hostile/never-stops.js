// One builtin that runs for centuries. V8 cannot interrupt it; the kernel can end its process.
return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);
