/**
 * Carries the bytes of one connection to another one in memory that is used again. Node.js would
 * allocate 64 KiB for each read, and the garbage collection of that memory was a third of the CPU
 * time of large messages.
 */
import type { Socket } from "node:net";
import { readInto } from "../util/patches/node/onread.ts";

const READ_BYTES = 256 * 1024;

/** Smaller pieces are copied to memory of their own, of which Node.js has small parts ready. */
const MIN_REUSED_BYTES = 16 * 1024;

/** Maximum number of copies that wait for their next use. */
const MAX_FREE = 16;

/**
 * All connections are read into the same memory. So what was read is copied before the next one is
 * read: writing it may take longer.
 */
let shared: Buffer | undefined;
const free: Buffer[] = [];

/**
 * Sends what arrives on one connection to the other, no faster than that takes it, and ends that
 * one with the first. Returns false for a connection that cannot be read in this way.
 */
export function carry(from: Socket, to: Socket): boolean {
  const memory = (shared ??= Buffer.allocUnsafeSlow(READ_BYTES));
  const proceed = () => from.resume();
  const send = (piece: Buffer, written?: (error?: Error | null) => void) => {
    const isTaken = to.write(piece, written);
    if (!isTaken) to.once("drain", proceed);
    return isTaken;
  };
  const read = (bytes: number): boolean => {
    const piece = memory.subarray(0, bytes);
    if (!to.writable) return true;
    if (bytes < MIN_REUSED_BYTES) return send(Buffer.from(piece));
    const copy = free.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES);
    piece.copy(copy);
    return send(copy.subarray(0, bytes), (error) => {
      // The system may still use what it was given when a write fails.
      if (!error && free.length < MAX_FREE) free.push(copy);
    });
  };
  if (!readInto(from, memory, read)) return false;
  if (from.readableEnded) to.end();
  else from.once("end", () => to.end());
  const arrived: Buffer | null = from.read();
  if (arrived === null || send(arrived)) proceed();
  return true;
}
