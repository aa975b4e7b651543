/**
 * Opens regular files only: opening a pipe, a socket or a device can block for ever or have side
 * effects.
 */
import { constants, createReadStream } from "node:fs";

/**
 * Flags for reading. Opening a pipe that has replaced the file does not block until its other end
 * is opened.
 */
export const PLAIN_READ: number = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Opens a stream of a file whose type was checked before. */
export const plainReadStream = (path: string, range: { readonly start?: number; readonly end?: number } = {}) =>
  // The types allow only the names of flags.
  createReadStream(path, { ...range, flags: PLAIN_READ as unknown as string });
