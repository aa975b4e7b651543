import { readdirSync, readlinkSync } from "node:fs";
import type { Host } from "../host.ts";

/**
 * The open resources of the process by kind: "Timeout", "TCPServerWrap", "open file /tmp/x",
 * "listener of process exit".
 */
export type Handles = ReadonlyMap<string, number>;

/**
 * Returns the open resources of the process: handles that keep it alive, by Node's names for them,
 * files (where the system shows them: Linux) and listeners of `process`. Ports of the host and
 * connections that came in through them do not count.
 */
export function handlesNow(host?: Pick<Host, "listening" | "connections">): Handles {
  const counts = new Map<string, number>();
  const count = (kind: string, by = 1) => counts.set(kind, (counts.get(kind) ?? 0) + by);
  for (const kind of process.getActiveResourcesInfo()) count(kind);
  for (const path of openFiles()) count(`open file ${path}`);
  for (const event of process.eventNames()) count(`listener of process ${String(event)}`, process.listenerCount(event));
  if (host !== undefined) {
    count("TCPServerWrap", -host.listening().length);
    count("TCPSocketWrap", -host.connections());
  }
  return counts;
}

/** Returns what was added since: "2 TCPSocketWrap", "open file /tmp/x". */
export function more(now: Handles, before: Handles): string[] {
  return [...now].flatMap(([kind, count]) => {
    const added = count - (before.get(kind) ?? 0);
    return added > 0 ? [kind.includes(" ") && added === 1 ? kind : `${added} ${kind}`] : [];
  });
}

const descriptors = "/proc/self/fd";

/** Returns the paths of open files. Sockets and pipes are counted as handles. */
function openFiles(): string[] {
  try {
    return readdirSync(descriptors).flatMap((descriptor) => {
      const path = target(descriptor);
      return path?.startsWith("/") && !path.startsWith("/proc/") ? [path] : [];
    });
  } catch {
    return [];
  }
}

/**
 * Returns undefined for a descriptor that was closed meanwhile, such as the one of the listing
 * itself.
 */
function target(descriptor: string): string | undefined {
  try {
    return readlinkSync(`${descriptors}/${descriptor}`);
  } catch {
    return undefined;
  }
}
