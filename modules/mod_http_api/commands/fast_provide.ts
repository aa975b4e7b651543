/** Options by which a call tells the network at once of what it stores or pins. */
import type { AnyCall, Options, OptionValues } from "../rpc/command.ts";

export const fastProvide = {
  "fast-provide-root": {
    type: "bool",
    since: "0.43",
    help: "Tell the network at once that it is here, by default; otherwise in the next round.",
  },
  "fast-provide-dag": { type: "bool", since: "0.43", help: "Tell of all that is below it as well; implied here." },
  "fast-provide-wait": {
    type: "bool",
    since: "0.43",
    help: "Wait until the network is told, and fail if it cannot be.",
  },
} as const satisfies Options;

type Call = Pick<AnyCall, "node" | "level"> & { readonly options: OptionValues<typeof fastProvide> };

/**
 * Whether to tell, and to wait until it is told. All below a root is told of together with it. Where the call says nothing of it
 * `Import` of the configuration counts, at levels that take defaults from there, and then `preset`.
 */
export function announced({ node, level, options }: Call, preset = true): boolean | "wait" {
  const usual = (name: "Root" | "DAG" | "Wait") =>
    level.importDefaults ? (node.lowLevel.repo.config.value(`Import.FastProvide${name}`) ?? undefined) : undefined;
  const root = options["fast-provide-root"] ?? usual("Root");
  const dag = options["fast-provide-dag"] ?? usual("DAG");
  const waits = options["fast-provide-wait"] ?? usual("Wait");
  const tells = (root ?? (preset || waits === true)) || dag === true;
  return tells && waits === true ? "wait" : tells;
}
