/** Information about the system and the process. */
import type { LowLevelNode } from "../low_level_node.ts";
import { NodeError } from "../util/errors.ts";
import { parseDuration } from "../util/go/duration.ts";
import { quote } from "../util/go/text.ts";
import { collectorNames, profile } from "../util/profile.ts";
import { type SystemFacts, systemFacts } from "../util/system_facts.ts";
import { zipped } from "../util/zip.ts";
import { type CallOptions, callSignal } from "./common.ts";

export interface DiagProfileOptions extends CallOptions {
  /**
   * What to collect, by the names of Kubo; all by default. `version`, `heap` (statistics), `goroutines-stack` (what keeps the event
   * loop), `cpu` and `allocs` (samples, as browsers' tools read them); what Node has no counterpart of is named as left out.
   */
  readonly collectors?: readonly string[] | undefined;
  /** For how long samples are taken: milliseconds or a duration as text, 30s by default, 1h at most; 0: none are. */
  readonly profileTime?: number | string | undefined;
}

export interface DiagApi {
  /** Facts about the system that the node runs on. */
  sys(options?: CallOptions): Promise<SystemFacts>;
  /**
   * A ZIP archive of what V8 and Node tell of the process.
   *
   * @throws NodeError for a duration that is none; after the archive for an unknown collector, for more than 1h, and while samples
   * are taken for somebody else
   */
  profile(options?: DiagProfileOptions): AsyncIterable<Uint8Array>;
}

export function diagApi(node: LowLevelNode): DiagApi {
  return {
    sys: () => systemFacts(node.repo.path, node.online),
    profile({ collectors = collectorNames, profileTime = "30s", ...options } = {}) {
      return zipped(profile({ collectors, milliseconds: millisecondsOf(profileTime), signal: callSignal(options) }));
    },
  };
}

function millisecondsOf(duration: number | string): number {
  if (typeof duration === "number") return duration;
  try {
    return parseDuration(duration);
  } catch (error) {
    const { message } = error as Error;
    throw new NodeError(`failed to parse profile duration ${quote(duration)}: ${message}`, { cause: error });
  }
}
