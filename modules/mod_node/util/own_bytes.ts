/**
 * Returns a copy with memory of its own. `bytes.slice()` does not copy if `bytes` is a `Buffer`, as
 * it often is from sockets, files and callers: it returns a view of the same memory.
 */
export const ownBytes = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);
