/** The types that `createNode` and `module.depends("node")` return. */
import type { NodeApi } from "../api/index.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import type { NodeMetrics } from "../node/node_metrics.ts";

/**
 * The node as seen by programs: the client interface and its lifecycle. Can be closed by
 * `await using`.
 */
export interface Node extends NodeApi, AsyncDisposable {
  /** The components below this interface. */
  readonly lowLevel: LowLevelNode;
  /** Declared metrics of the node for dashboards. */
  readonly metrics: NodeMetrics;
  /** Whether the node was opened with `offline` and never uses the network. */
  readonly offline: boolean;
  /** Same as `lowLevel.goOnline`. @throws NodeError for an invalid configuration */
  goOnline(): Promise<void>;
  /** Resolves when everything is closed and the repo is unlocked. May be called repeatedly. */
  close(): Promise<void>;
  /** Same as `close`, under the name that client libraries use. */
  stop(): Promise<void>;
}

/**
 * Returned by `module.depends("node")`. The host closes the node when the last module that uses it
 * is unloaded, so `close` and `stop` of this object do nothing.
 */
export interface NodeModule extends Node {
  /**
   * Whether the node is open. If modules are only inspected (`modhost check`), it stays closed
   * until `open` is called.
   */
  readonly isOpen: boolean;
  /** Opens the node unless it is open already. */
  open(): Promise<void>;
}
