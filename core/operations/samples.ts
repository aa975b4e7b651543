/** Samples of the usage of module instances, and the difference between two samples. */

/** The usage of an instance at a moment. */
export interface Sample {
  readonly at: number;
  readonly requests: number;
  readonly failedRequests: number;
  readonly faults: number;
  readonly blocked: number;
  readonly longPieces: number;
  /** Milliseconds of CPU time of the thread. */
  readonly cpu: number;
}

/** Returns the milliseconds of CPU time of this thread. */
export function threadTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const nothing: Sample = { at: 0, requests: 0, failedRequests: 0, faults: 0, blocked: 0, longPieces: 0, cpu: 0 };

/** The use of the event loop within some time. */
export interface LoopUse {
  /** From 0 to 1. */
  readonly share: number;
  readonly pieces: number;
}

/** `seconds` is the time between the samples. */
export function loopUseSince(before: Sample, now: Sample, seconds: number): LoopUse {
  // On a busy machine a piece takes long because other processes run meanwhile, so only CPU time
  // counts.
  const milliseconds = Math.min(now.blocked - before.blocked, now.cpu - before.cpu);
  return { share: milliseconds / (seconds * 1000), pieces: now.longPieces - before.longPieces };
}

/**
 * Returns the first sample that is not older than a moment; an empty one for an instance that was
 * loaded later.
 */
export function sampleAt(samples: readonly Sample[], moment: number): Sample {
  const first = samples[0];
  if (first === undefined || first.at > moment) return { ...nothing, cpu: first?.cpu ?? 0 };
  return samples[samples.findLastIndex(({ at }) => at < moment) + 1] ?? (samples.at(-1) as Sample);
}
