/**
 * A copy, with memory of its own. `bytes.slice()` is none where the bytes are a `Buffer`, as those
 * of sockets, files and callers are: there it gives a view of the same memory.
 */
export const ownBytes = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);
