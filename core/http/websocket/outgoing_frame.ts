/** Builds frames of short messages from a server to its client. */

/**
 * Copying up to this many bytes costs less than writing them separately from their head, as the
 * library does.
 */
const MAX_FRAMED_BYTES = 2048;

const LAST_TEXT = 0x81;
const LAST_BINARY = 0x82;
/**
 * Shorter lengths are in the second byte. This value says that two more bytes contain the length.
 */
const LENGTH_16 = 126;

/**
 * Returns a message as one frame, head and payload in one piece, without a mask (RFC 6455, 5.2).
 * Undefined for a message that is too long for that.
 */
export function frameOf(message: string | Uint8Array): Buffer | undefined {
  if (message.length > MAX_FRAMED_BYTES) return undefined;
  const isText = typeof message === "string";
  const length = isText ? Buffer.byteLength(message) : message.length;
  if (length > MAX_FRAMED_BYTES) return undefined;
  const head = length < LENGTH_16 ? 2 : 4;
  const frame = Buffer.allocUnsafe(head + length);
  frame[0] = isText ? LAST_TEXT : LAST_BINARY;
  if (head === 2) frame[1] = length;
  else {
    frame[1] = LENGTH_16;
    frame.writeUInt16BE(length, 2);
  }
  if (isText) frame.write(message, head);
  else frame.set(message, head);
  return frame;
}
