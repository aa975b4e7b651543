/** Usage of module instances as it was at moments, and what lies between two of them. */

/** Usage of an instance at a moment. */
export interface Sample {
  readonly at: number;
  readonly requests: number;
  readonly failedRequests: number;
  readonly faults: number;
  readonly blocked: number;
  readonly longPieces: number;
  /** Milliseconds for which the thread had a processor. */
  readonly cpu: number;
}

/** Milliseconds for which this thread has had a processor. */
export function threadTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const nothing: Sample = { at: 0, requests: 0, failedRequests: 0, faults: 0, blocked: 0, longPieces: 0, cpu: 0 };

/** Of the event loop, within some time. */
export interface Held {
  /** From 0 to 1. */
  readonly share: number;
  readonly pieces: number;
}

/** `seconds`: the time from one to the other. */
export function heldSince(before: Sample, now: Sample, seconds: number): Held {
  // On a busy machine a piece takes long because others run meanwhile: that is not its fault.
  const milliseconds = Math.min(now.blocked - before.blocked, now.cpu - before.cpu);
  return { share: milliseconds / (seconds * 1000), pieces: now.longPieces - before.longPieces };
}

/** The first account that is not older than a moment; an empty one for who came later. */
export function sampleAt(samples: readonly Sample[], moment: number): Sample {
  const first = samples[0];
  if (first === undefined || first.at > moment) return { ...nothing, cpu: first?.cpu ?? 0 };
  return samples[samples.findLastIndex(({ at }) => at < moment) + 1] ?? (samples.at(-1) as Sample);
}
