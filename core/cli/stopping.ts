/**
 * Prints the progress of a stop of `modhost run`: repeatedly what it waits for, and finally how
 * long it took.
 */

import type { Host } from "../host.ts";
import type { HttpModule } from "../http/index.ts";
import { followCuts } from "../http/message/in_flight.ts";
import { counted } from "../util/text.ts";
import type { Output } from "./output.ts";

const MAX_SHOWN_REQUESTS = 10;

/** Milliseconds after which the pending requests are printed again. */
const REPEAT_MS = 3000;

/** A stop whose progress is printed. */
export interface StopProgress {
  /** Called when the stop has ended. */
  ended(): void;
}

/**
 * Prints what the stop waits for, until it has ended. Returns undefined for a host that does not
 * run.
 */
export function announceStop(host: Host, output: Output, signal: string): StopProgress | undefined {
  if (host.state !== "running") return undefined;
  const begun = performance.now();
  const requests = active(host);
  const grace = Number(host.config.value("unload_grace") ?? 10);
  const delay = Number(host.config.value("stop_delay") ?? 0);
  output.show({ event: "stopping", signal, delay, grace, requests }, () => {
    const lines = [
      ...(delay > 0 ? [`\nReporting not ready; requests are served for another ${delay} s, then:`] : []),
      requests.length === 0
        ? "\nStopping."
        : `\nStopping: pending requests have at most ${grace} s; Ctrl+C again ends them at once:`,
    ];
    return [...lines, ...listed(requests)].join("\n");
  });
  const cut: string[] = [];
  const unfollow = followCuts((names) => cut.push(names));
  const seconds = () => Math.round((performance.now() - begun) / 1000);
  const repeating = setInterval(() => {
    const left = active(host);
    const connections = host.connections();
    if (left.length === 0 && connections === 0) return;
    output.show({ event: "waiting", seconds: seconds(), requests: left, connections }, () =>
      [
        `Stopping for ${seconds()} s: ${counted(left.length, "request")}, ${counted(connections, "connection")}`,
        ...listed(left),
      ].join("\n"),
    );
  }, REPEAT_MS);
  return {
    ended() {
      clearInterval(repeating);
      unfollow();
      const last = cut.length === 0 ? "." : `; cut off: ${cut.join(", ")}`;
      output.show({ event: "stopped", seconds: seconds(), cut }, () => `Stopped after ${seconds()} s${last}`);
    },
  };
}

function listed(requests: readonly string[]): string[] {
  const more = requests.length - MAX_SHOWN_REQUESTS;
  return [
    ...requests.slice(0, MAX_SHOWN_REQUESTS).map((request) => `  ${request}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

function active(host: Host): string[] {
  try {
    return host.exports<HttpModule>("http").active();
  } catch {
    return []; // The module is not loaded, or has been unloaded.
  }
}
