/** The log of the node, with the subsystems and levels of go-ipfs. */
import { failure } from "./errors.ts";
import { quote } from "./go/text.ts";

/** Levels from the least to the most severe. */
const nodeLogLevels = ["debug", "info", "warn", "error", "dpanic", "panic", "fatal"] as const;
export type NodeLogLevel = (typeof nodeLogLevels)[number];

/** Subsystems of the node; their names are those of go-ipfs. */
export const subsystems = [
  "bitswap",
  "bitswap_network",
  "blockservice",
  "blockstore",
  "bootstrap",
  "cmd/ipfs",
  "cmds/http",
  "command",
  "core",
  "core/commands",
  "core/server",
  "dht",
  "engine",
  "fsrepo",
  "fuse/ipfs",
  "fuse/ipns",
  "ipns",
  "ipns-repub",
  "keystore",
  "mdns",
  "mfs",
  "namesys",
  "net/identify",
  "p2p-mount",
  "p2pnode",
  "path",
  "peering",
  "pin",
  "ping",
  "provider.queue",
  "provider.simple",
  "providers",
  "pubsub",
  "pubsub-valuestore",
  "relay",
  "remotepinning/mfs",
  "reprovider.simple",
  "routing/record",
  "swarm2",
  "table",
] as const;
export type Subsystem = (typeof subsystems)[number];

export interface LogEntry {
  readonly time: Date;
  readonly system: Subsystem;
  readonly level: NodeLogLevel;
  readonly message: string;
}

/** Maximum number of names that may have a level of their own. */
const MAX_NAMES = 1000;

const isSubsystem = (name: string): name is Subsystem => (subsystems as readonly string[]).includes(name);

/** Whether `level` is `least` or more severe. */
export const isAtLeast = (level: NodeLogLevel, least: NodeLogLevel): boolean =>
  nodeLogLevels.indexOf(level) >= nodeLogLevels.indexOf(least);

/**
 * Returns the level with this name.
 * @throws NodeError if there is none
 */
export function logLevelNamed(text: string): NodeLogLevel {
  const found = nodeLogLevels.find((level) => level === text.toLowerCase());
  if (found === undefined) throw failure("LOG_LEVEL_INVALID", { level: quote(text) });
  return found;
}

/** Drops messages below the level of their subsystem. All levels begin as `error`. */
export class NodeLog {
  readonly #levels = new Map<string, number>();
  readonly #listeners = new Set<(entry: LogEntry) => void>();
  #default = nodeLogLevels.indexOf("error");

  /**
   * Sets a level and returns it. The subsystem `*` stands for all. The level is case-insensitive,
   * and an empty one means info. With `lenient`, the level may be `default`, which is the level of
   * all subsystems without their own, and the subsystem may have any name.
   * @throws NodeError for an unknown level or subsystem
   */
  setLevel(subsystem: string, level: string, lenient = false): NodeLogLevel {
    const severity = level === "" ? "info" : level.toLowerCase();
    const isDefault = lenient && severity === "default";
    const index = isDefault ? this.#default : (nodeLogLevels as readonly string[]).indexOf(severity);
    if (index < 0) throw failure("LOG_LEVEL_INVALID", { level: quote(level) });
    if (subsystem === "*") {
      this.#default = index;
      this.#levels.clear();
    } else if (isSubsystem(subsystem) || (lenient && this.#levels.size < MAX_NAMES)) this.#levels.set(subsystem, index);
    else throw failure("LOGGER_UNKNOWN", { reason: "Error: No such logger" });
    return nodeLogLevels[index] as NodeLogLevel;
  }

  /** All subsystems, and other names for which a level was set. */
  get names(): readonly string[] {
    return [...new Set<string>([...subsystems, ...this.#levels.keys()])];
  }

  /** Level of subsystems for which none was set. */
  get defaultLevel(): NodeLogLevel {
    return nodeLogLevels[this.#default] as NodeLogLevel;
  }

  /** The lowest level that any subsystem has. */
  get lowestLevel(): NodeLogLevel {
    return nodeLogLevels[Math.min(this.#default, ...this.#levels.values())] as NodeLogLevel;
  }

  /**
   * Whether a message would reach a listener. Callers use this to avoid building expensive
   * messages.
   */
  isWritten(system: Subsystem, level: NodeLogLevel): boolean {
    return this.#listeners.size > 0 && isAtLeast(level, this.level(system));
  }

  level(subsystem: string): NodeLogLevel {
    return nodeLogLevels[this.#levels.get(subsystem) ?? this.#default] as NodeLogLevel;
  }

  write(system: Subsystem, level: NodeLogLevel, message: string): void {
    if (nodeLogLevels.indexOf(level) < nodeLogLevels.indexOf(this.level(system))) return;
    const entry: LogEntry = { time: new Date(), system, level, message };
    for (const listener of this.#listeners) listener(entry);
  }

  /**
   * Calls the listener with every message that is not dropped; the returned function unsubscribes
   * it.
   */
  listen(listener: (entry: LogEntry) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
