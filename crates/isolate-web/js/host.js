// What Rust hands over. The loader puts it on the global object under a name that exists only until this
// module, the first one, takes it away again.
const handed = globalThis.__bulkhead;
delete globalThis.__bulkhead;

export const native = handed.native;

const embedder = handed.embedder;
export const hostCall = embedder.hostCall;
export const log = embedder.log;
export const now = embedder.now;
export const asyncContext = embedder.asyncContext;
export const setAsyncContext = embedder.setAsyncContext;
