/** Generates `docs/reference/command-api.md`: the exports of `modhost/cli`. */
import { page } from "./markdown.ts";
import { typeLinks } from "./module_api.ts";
import type { Sources } from "./sources.ts";
import { calledFirst, describe, linksTo } from "./types.ts";

const entry = "core/cli/index.ts";

export function commandApiPage(sources: Sources): string {
  const all = calledFirst(sources.exportsOf(entry));
  const package_ = linksTo("module-api.md", sources.exportsOf("core/index.ts"));
  const links = new Map([...package_, ...typeLinks(sources), ...linksTo("", all)]);
  const introduction = `${sources.introductionOf(entry)} [Extend modhost](../guides/extend/README.md) shows how they are used.`;
  return page("Commands of modules", entry, [introduction, ...all.map((exported) => describe(exported, links))]);
}
