/** From a path to the one that it leads to. */

import type { CID } from "multiformats/cid";
import { cidText, parseCidWithBase } from "../../mod_node/formats/cid/text.ts";
import { type AnyCall, type Commands, defineCommand, value } from "../rpc/command.ts";
import { recordOptions } from "./names.ts";
import { resolvedPath } from "./shapes.ts";

/** Writes CIDs as the path does that was asked for, unless a base is named; `level` as of `cidText`. */
export function writerFor(
  path: string,
  call: Pick<AnyCall, "options" | "cidText">,
  level: "upgraded" | "kept" = "upgraded",
): (cid: CID) => string {
  const named = (call.options["cid-base"] ?? "") !== "";
  const own = named || path.startsWith("/ipns/") ? undefined : cidIn(path);
  if (own === undefined) return call.cidText(level);
  return (cid) => (own.cid.version === 0 ? cid.toString() : cidText(cid.toV1(), own.base));
}

function cidIn(path: string): ReturnType<typeof parseCidWithBase> | undefined {
  const [first = "", , third = ""] = path.split("/");
  try {
    return parseCidWithBase(first === "" ? third : first);
  } catch {
    return undefined;
  }
}

export const commands = {
  resolve: defineCommand({
    help: "Resolves a path or a name to the path of what it leads to.",
    readOnly: true,
    arguments: [{ name: "name", required: true, stdin: "first", help: "The path." }],
    options: {
      recursive: { type: "bool", aliases: ["r"], default: true, help: "Go on until it is no name any more." },
      "dht-record-count": { type: "int", aliases: ["dhtrc"], help: "Records to ask the routing system for." },
      "dht-timeout": {
        type: "string",
        aliases: ["dhtt"],
        help: 'Longest time to ask the routing system, such as "30s"; 0 for no limit.',
      },
    },
    returns: value(resolvedPath),
    async run(call) {
      const { name } = call.arguments;
      const { lowLevel: node } = call;
      const looking = recordOptions(call);
      const named = /^\/(?:ipns|name)\/(.*)$/s.exec(name)?.[1];
      // One step leads to whatever the name stands for, be it a name or nothing.
      if (named !== undefined && !call.options.recursive) {
        return { Path: (await node.names.find(named, { ...looking, depth: 1 })).path };
      }
      const write = writerFor(name, call);
      const { namespace, cid, remainder } = await node.resolve(name, looking);
      return { Path: ["", namespace, write(cid), ...remainder].join("/") };
    },
    text: ({ Path }) => `${Path}\n`,
  }),
} satisfies Commands;
