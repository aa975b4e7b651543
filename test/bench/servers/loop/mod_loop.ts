/** Tells how long the event loop is held, from within the process. */
import type { HttpEvent, Module } from "#core/types.ts";

/** Milliseconds between two looks, while nothing holds the loop. */
const LOOK_MS = 1;

export interface Held {
  /** How often it was looked, from the second look on. */
  readonly looks: number;
  /**
   * Milliseconds of CPU time of the loop's thread between two looks, which other programs do not
   * add to: the longest, and of a hundred looks all but one.
   */
  readonly max: number;
  readonly p99: number;
  /** The longest in milliseconds of time, waiting for a processor included. */
  readonly wait: number;
}

export const depends = ["http"];

export default function loop(module: Module): void {
  let held: number[] = [];
  let wait = 0;
  let cpu = threadCpu();
  let last = performance.now();
  let timer = setTimeout(look, LOOK_MS);

  function look(): void {
    const nowCpu = threadCpu();
    const now = performance.now();
    held.push(nowCpu - cpu);
    wait = Math.max(wait, now - last);
    cpu = nowCpu;
    last = now;
    timer = setTimeout(look, LOOK_MS);
  }

  function told(): Held {
    const sorted = Float64Array.from(held).sort();
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
    const told = { looks: held.length, max: sorted.at(-1) ?? 0, p99: at(0.99), wait };
    held = [];
    wait = 0;
    return told;
  }

  module.provides("http", {
    route: {
      // The sums are not part of what is measured next.
      "GET /": ({ response }: HttpEvent) => {
        response.headers.content_type = "application/json";
        const text = JSON.stringify(told());
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
