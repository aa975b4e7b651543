/** Waiting in a collection. */
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Resolves when `change` resolves or the time is over.
 * @throws the reason of the signal
 */
export async function pause(change: Promise<void>, milliseconds: number, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  try {
    await Promise.race([change, sleep(milliseconds, undefined, { signal: either }).catch(() => {})]);
    signal.throwIfAborted();
  } finally {
    over.abort();
  }
}
