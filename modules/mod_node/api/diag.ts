/** Information about the system and the process. */
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure } from "../util/errors.ts";
import { parseDuration } from "../util/go/duration.ts";
import { quote } from "../util/go/text.ts";
import { collectorNames, profile } from "../util/profile.ts";
import { type SystemFacts, systemFacts } from "../util/system_facts.ts";
import { zipped } from "../util/zip.ts";
import { type CallOptions, callSignal } from "./common.ts";

export interface DiagProfileOptions extends CallOptions {
  /**
   * Collectors to run, by the names of Kubo; all by default. `version`, `heap` (statistics),
   * `goroutines-stack` (what keeps the event loop alive), `cpu` and `allocs` (samples in the format
   * of the browsers' developer tools). Collectors without a counterpart in Node.js are listed as
   * omitted.
   */
  readonly collectors?: readonly string[] | undefined;
  /**
   * How long samples are taken: milliseconds or a duration as text, 30s by default, 1h at most. 0
   * takes no samples.
   */
  readonly profileTime?: number | string | undefined;
}

export interface DiagApi {
  /** Facts about the system that the node runs on. */
  sys(options?: CallOptions): Promise<SystemFacts>;
  /**
   * Yields a ZIP archive of what V8 and Node.js report about the process.
   *
   * @throws NodeError for an invalid duration. The error comes after the archive for an unknown
   * collector, for more than 1h, and while another caller takes samples.
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
    throw failure(
      "DURATION_INVALID",
      { reason: `failed to parse profile duration ${quote(duration)}: ${message}` },
      error,
    );
  }
}
