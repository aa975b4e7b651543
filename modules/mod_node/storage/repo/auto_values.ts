/** What the word `auto` of later versions of the reference (Kubo) stands for here: nothing is looked up, it is built in. */
import { bootstrapPeers, domainResolvers } from "./defaults.ts";
import { isObject, type JsonObject } from "./json.ts";

export const AUTO = "auto";

/** Lists in which it may stand, by path, with what it stands for. */
const lists: Readonly<Record<string, readonly string[]>> = {
  Bootstrap: bootstrapPeers,
  "Routing.DelegatedRouters": [],
  "Ipns.DelegatedPublishers": [],
};

/** The same document with what the word stands for in its place. */
export function withoutAuto(document: JsonObject): JsonObject {
  let expanded = document;
  for (const [path, meaning] of Object.entries(lists)) {
    expanded = changed(expanded, path.split("."), (list) =>
      Array.isArray(list) ? list.flatMap((each) => (each === AUTO ? meaning : [each])) : list,
    );
  }
  return changed(expanded, ["DNS", "Resolvers"], expandedResolvers);
}

function expandedResolvers(resolvers: unknown): unknown {
  if (!isObject(resolvers) || !Object.values(resolvers).includes(AUTO)) return resolvers;
  const given = Object.entries(resolvers).filter(([, address]) => address !== AUTO);
  return { ...domainResolvers, ...Object.fromEntries(given) };
}

/** Where there is such a value. */
function changed(
  document: JsonObject,
  [name = "", ...below]: readonly string[],
  change: (value: unknown) => unknown,
): JsonObject {
  if (!Object.hasOwn(document, name)) return document;
  const value = document[name];
  if (below.length === 0) return { ...document, [name]: change(value) };
  return isObject(value) ? { ...document, [name]: changed(value, below, change) } : document;
}
