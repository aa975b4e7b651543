/** Watches by periodic pings whether the other end of a channel still responds. */
import type { Channel } from "./channel.ts";

/** Number of pings within the time that the other end may be silent. */
const PINGS = 4;

export interface LivenessEvents {
  /** Called with the seconds since the last response, again and again until the watch ends. */
  silent(seconds: number): void;
  /** Called with the value of each response. */
  alive?(value: unknown): void;
}

/**
 * Watches until the returned function is called. `silence`: seconds that the other end may be
 * silent.
 */
export function watchLiveness(channel: Channel, silence: number, { silent, alive }: LivenessEvents): () => void {
  const most = silence * 1000;
  let responded = performance.now();
  let pinged = responded;
  const ping = () => {
    // Time during which this thread itself was blocked does not count as the other end's silence.
    const isLate = performance.now() - pinged > (2 * most) / PINGS;
    pinged = performance.now();
    if (isLate) responded = Math.max(responded, pinged - most / 2);
    if (pinged - responded > most) silent((pinged - responded) / 1000);
    channel.call("ping").then(
      (value) => {
        responded = performance.now();
        alive?.(value);
      },
      () => undefined,
    );
  };
  const timer = setInterval(ping, most / PINGS).unref();
  return () => clearInterval(timer);
}
