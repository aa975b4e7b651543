/**
 * Generates `docs/reference/node.md`: the client interface of the node, from the types of its
 * methods.
 */
import { basename } from "node:path";
import ts from "typescript";
import { anchor, page } from "./markdown.ts";
import type { Exported, Sources } from "./sources.ts";
import { describe, linksTo } from "./types.ts";

const methods = "modules/mod_node/api/index.ts";
const types = ["modules/mod_node/library/types.ts", "modules/mod_node/node/low_level_node.ts"];

/** Titles of files whose names do not say enough. The other files are groups of methods. */
const titles: Readonly<Record<string, string>> = {
  index: "All groups",
  common: "Options of all methods",
  candidates: "Content that can be added",
  byte_stream: "Streams of bytes",
  pin_remote: "node.pin.remote",
};

/** Files whose types are shown with a group of another name. */
const groupOf: Readonly<Record<string, string>> = { diff: "object", object_store: "object", resources: "swarm" };

/** Types that the page shows first. */
const orderOfTypes = ["Node", "NodeModule", "NodeOptions", "NodeStat", "OfflineCode", "LowLevelNode"];

/** The first groups of the page, in this order. */
const first = ["index", "common", "candidates", "byte_stream"];

export function nodeApiPage(sources: Sources): string {
  const isMade = ({ node }: Exported) => ts.isFunctionDeclaration(node) || ts.isVariableDeclaration(node);
  const own = sources.exportsOf(methods).filter((exported) => !isMade(exported));
  const around = types.flatMap((file) => sources.exportsOf(file)).sort((a, b) => rankOf(a) - rankOf(b));
  const byFile = Map.groupBy(own, ({ file }) => keyOf(file));
  const groups = [...byFile.keys()].filter((key) => !first.includes(key)).sort();
  const sections = [
    { title: "The node", introduction: "", all: around },
    ...[...first.filter((key) => byFile.has(key)), ...groups].map((key) => {
      const all = methodsFirst(byFile.get(key) ?? []);
      const introduction = key === "index" ? "" : sources.introductionOf(all[0]?.file ?? methods);
      return { title: titles[key] ?? `node.${key}`, introduction, all };
    }),
  ];
  const links = new Map(linksTo("", [...around, ...own]));
  return page(
    "The node's interface",
    "modules/mod_node/library/types.ts, modules/mod_node/node/low_level_node.ts and modules/mod_node/api",
    [
      introduction,
      sections.map(contents).join("\n"),
      ...sections.flatMap(({ title, introduction: about, all }) => [
        `## ${title}`,
        ...(about === "" ? [] : [about]),
        ...all.map((exported) => describe(exported, links)),
      ]),
    ],
  );
}

const rankOf = ({ name }: Exported) =>
  (orderOfTypes.indexOf(name) + orderOfTypes.length + 1) % (orderOfTypes.length + 1);

/** Puts the methods of a group before the types that they take and return. */
function methodsFirst(all: readonly Exported[]): Exported[] {
  const hasMethods = ({ name }: Exported) => name.endsWith("Api");
  return [...all.filter(hasMethods), ...all.filter((exported) => !hasMethods(exported))];
}

function keyOf(file: string): string {
  const name = basename(file, ".ts");
  return groupOf[name] ?? name;
}

function contents({ title, all }: { readonly title: string; readonly all: readonly Exported[] }): string {
  const names = all.map(({ name }) => `[${name}](#${anchor(name)})`);
  return `- [${title}](#${anchor(title)}): ${names.join(", ")}`;
}

const introduction = `For programmers: the methods that \`createNode\` of \`modhost/node\` and \`module.depends("node")\` return. They are those of the client libraries of the
RPC API (kubo-rpc-client 7, ipfs-http-client 60), with the same names, arguments, results and failures, and more if the RPC
API has more. [Use the node in a program](../guides/use-the-node.md) is the introduction. The commands of the RPC API, which call
these methods, have [pages of their own](rpc/README.md).

CIDs are those of \`multiformats\`, peer ids those of \`@libp2p/interface\`, and addresses those of \`@multiformats/multiaddr\`. An argument of the
type \`IpfsPath\` may be a CID or text. A failure is a \`NodeError\` with [a code](node-errors.md).`;
