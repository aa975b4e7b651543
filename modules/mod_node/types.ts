/** What `createNode` and `module.depends("node")` give. */
import type { NodeApi } from "./api/index.ts";
import type { LowLevelNode } from "./low_level_node.ts";

/** The node as programs see it: the client interface, and its life. `await using` closes it. */
export interface Node extends NodeApi, AsyncDisposable {
  /** The parts beneath. */
  readonly lowLevel: LowLevelNode;
  /** It was told to stay without a network. */
  readonly offline: boolean;
  /** As `lowLevel.goOnline`. @throws NodeError of a configuration that says what cannot be */
  goOnline(): Promise<void>;
  /** Resolves when nothing is open any more and the repo is unlocked. May be called again. */
  close(): Promise<void>;
  /** As `close`, under the name that the clients have for it. */
  stop(): Promise<void>;
}

/**
 * What `module.depends("node")` gives. The host closes the node when the last module that uses it is gone: `close` of
 * this one does nothing, and so does `stop`.
 */
export interface NodeModule extends Node {
  /** Where modules are only looked at, such as by `modhost check`, no repo is opened unless somebody asks for it. */
  readonly isOpen: boolean;
  /** Resolves when the node is open; where it is already, at once. */
  open(): Promise<void>;
}
