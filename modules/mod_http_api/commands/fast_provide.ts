/** Options that let a call announce what it stores or pins at once. */
import type { AnyCall, Options, OptionValues } from "../rpc/command.ts";

export const fastProvide = {
  "fast-provide-root": {
    type: "bool",
    since: "0.43",
    help: "Announce the content at once, which is the default; otherwise in the next round.",
  },
  "fast-provide-dag": { type: "bool", since: "0.43", help: "Also announce everything below it; always done here." },
  "fast-provide-wait": {
    type: "bool",
    since: "0.43",
    help: "Wait until the content is announced, and fail if that is not possible.",
  },
} as const satisfies Options;

/** Facts about the content that `Provide.Strategy` selects by. */
interface Content {
  readonly isPinned: boolean;
  readonly isInFiles: boolean;
}

type Call = Pick<AnyCall, "node" | "level"> & { readonly options: OptionValues<typeof fastProvide> };

/**
 * Returns whether to announce the content, and whether to wait for that. Everything below a root is
 * announced together with it. If the call does not decide, `Import` of the configuration does, at
 * levels that take defaults from there, and then `preset`.
 */
export function announceDecision(
  { node, level, options }: Call,
  { preset = true, content = { isPinned: true, isInFiles: false } }: { preset?: boolean; content?: Content } = {},
): boolean | "wait" {
  const usual = (name: "Root" | "DAG" | "Wait") =>
    level.importDefaults ? (node.lowLevel.repo.config.value(`Import.FastProvide${name}`) ?? undefined) : undefined;
  const root = options["fast-provide-root"] ?? usual("Root");
  const dag = options["fast-provide-dag"] ?? usual("DAG");
  const waits = options["fast-provide-wait"] ?? usual("Wait");
  const isEnabled = (root ?? (preset || waits === true)) || dag === true;
  const announce = isEnabled && waits === true ? "wait" : isEnabled;
  const isSelected = dag === true || !level.importDefaults || selects(strategyOf(node), content);
  for (const line of linesOf(node, { announce, waits: waits === true, isSelected })) {
    node.lowLevel.log.write("core/commands", "debug", `fast-provide-root: ${line}`);
  }
  return isSelected && announce;
}

/** Returns "" if the config does not set the strategy; that means all content. */
const strategyOf = (node: Call["node"]): string => node.lowLevel.repo.config.value("Provide.Strategy") ?? "";

function selects(strategy: string, { isPinned, isInFiles }: Content): boolean {
  const parts = strategy.split("+");
  if (parts.some((part) => ["", "all", "flat"].includes(part))) return true;
  return (isPinned && parts.some((part) => ["pinned", "roots"].includes(part))) || (isInFiles && parts.includes("mfs"));
}

interface Decision {
  readonly announce: boolean | "wait";
  readonly waits: boolean;
  readonly isSelected: boolean;
}

/** Returns the lines that Kubo logs about the decision. */
function linesOf(node: Call["node"], { announce, waits, isSelected }: Decision): readonly string[] {
  if (announce === false) {
    return ["skipped: disabled by flag or config", ...(waits ? ["wait-flag-ignored"] : [])];
  }
  const enabled = `enabled, wait=${announce === "wait"}`;
  if (node.lowLevel.repo.config.value("Experimental.StrategicProviding")) {
    return [enabled, "skipped: Provide.Enabled is false"];
  }
  if (!node.lowLevel.online) return [enabled, "skipped: DHT not available"];
  if (!isSelected) return [enabled, `skipped: strategy does not match content: ${strategyOf(node)}`];
  return [enabled, announce === "wait" ? "providing synchronously" : "providing asynchronously"];
}
