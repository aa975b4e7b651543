/** Measures from within the process how long the event loop is blocked. */
import type { HttpEvent, Module } from "#core/types.ts";

/** Milliseconds between two checks while the loop is free. */
const LOOK_MS = 1;

export interface LoopDelay {
  /** Number of checks after the first one. */
  readonly looks: number;
  /**
   * Milliseconds of CPU time of the loop's thread between two checks, which other programs do not
   * affect: the maximum, and the 99th percentile.
   */
  readonly max: number;
  readonly p99: number;
  /** Maximum in elapsed milliseconds, including the wait for a processor. */
  readonly wait: number;
}

export const depends = ["http"];

export default function loop(module: Module): void {
  let delays: number[] = [];
  let wait = 0;
  let cpu = threadCpu();
  let last = performance.now();
  let timer = setTimeout(look, LOOK_MS);

  function look(): void {
    const nowCpu = threadCpu();
    const now = performance.now();
    delays.push(nowCpu - cpu);
    wait = Math.max(wait, now - last);
    cpu = nowCpu;
    last = now;
    timer = setTimeout(look, LOOK_MS);
  }

  function takeDelay(): LoopDelay {
    const sorted = Float64Array.from(delays).sort();
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
    const delay = { looks: delays.length, max: sorted.at(-1) ?? 0, p99: at(0.99), wait };
    delays = [];
    wait = 0;
    return delay;
  }

  module.provides("http", {
    route: {
      // The time of this calculation is not part of the next measurement.
      "GET /": ({ response }: HttpEvent) => {
        response.headers.content_type = "application/json";
        const text = JSON.stringify(takeDelay());
        cpu = threadCpu();
        return text;
      },
      "GET /hello": ({ response }: HttpEvent) => {
        response.headers.content_type = "text/plain; charset=utf-8";
        return "hello";
      },
    },
  });
  module.unload = () => clearTimeout(timer);
}

function threadCpu(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
