/**
 * Generates `docs/reference/module-api.md`: every type that a module author sees, and the other
 * exports of `modhost`.
 */
import { basename } from "node:path";
import { anchor, page } from "./markdown.ts";
import type { Exported, Sources } from "./sources.ts";
import { calledFirst, describe, type Links, linksTo } from "./types.ts";

const types = "core/types.ts";
/** Types of events are on a page of their own. */
const isOfEvents = ({ file }: Exported): boolean => basename(file) === "events.ts";

/**
 * Titles of the files of types, in the order of the page. Files without a title follow them under
 * their own names.
 */
const titles: Readonly<Record<string, string>> = {
  module: "The module object",
  options: "Reading options",
  provider: "Providing an app",
  routes: "Routes and handlers",
  handler_result: "Results of handlers",
  exchange: "Requests and responses",
  http_files: "Static files",
  http_gateway: "Content by CID",
  middleware: "Koa middleware",
  websocket: "Websockets",
  sse: "Server-sent events",
  server: "Operating the server",
  change: "Changes of the server",
  plan: "Effects of a changed configuration",
  config: "Showing and editing the configuration",
  certificate: "Certificates of the server",
  state: "The state of a server",
  presented_token: "The token of a request",
  tokens: "Tokens of the server",
  token_scope: "Kinds of token scopes",
};

/**
 * Types that the table of the events page is made from. They have no sections of their own there.
 */
export const tableOfEvents: readonly string[] = ["HostEvents", "FiredEvents", "AnnouncedEvents"];

/** Returns the types of the host, and those that bundled modules export. */
const typesOf = (sources: Sources): Exported[] => [types, ...sources.ofModules].flatMap(sources.exportsOf);

/** Returns links to all types, as seen from the folder of the reference. */
export function typeLinks(sources: Sources): Links {
  const all = typesOf(sources);
  const own = all.filter((exported) => !isOfEvents(exported));
  const events = linksTo("events.md", all.filter(isOfEvents)).map(([name, address]): [string, string] => {
    return [name, tableOfEvents.includes(name) ? "events.md#events" : address];
  });
  return new Map([...linksTo("module-api.md", own), ...events]);
}

/** Returns the types on the events page. */
export function eventTypes(sources: Sources): Exported[] {
  return sources.exportsOf(types).filter(isOfEvents);
}

export function moduleApiPage(sources: Sources): string {
  const own = typesOf(sources).filter((exported) => !isOfEvents(exported));
  const shown = new Set(typesOf(sources).map(({ name }) => name));
  const package_ = calledFirst(sources.exportsOf("core/index.ts").filter(({ name }) => !shown.has(name)));
  const byFile = Map.groupBy(own, ({ file }) => file);
  const order = Object.keys(titles);
  const rank = (file: string) => (order.indexOf(keyOf(file)) + order.length + 1) % (order.length + 1);
  const files = [...byFile.keys()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  const sections = [
    ...files.map((file) => ({
      title: titleOf(file),
      introduction: sources.introductionOf(file),
      all: byFile.get(file) ?? [],
    })),
    {
      title: "The package",
      introduction: 'Functions and classes that `import ... from "modhost"` has in addition to the types.',
      all: package_,
    },
  ];
  const links = new Map(
    [...typeLinks(sources), ...linksTo("module-api.md", package_)].map(([name, address]) => [
      name,
      address.replace(/^module-api\.md/, ""),
    ]),
  );
  return page("Module API", "core/types.ts and core/index.ts", [
    introduction,
    sections.map(contents).join("\n"),
    ...sections.flatMap((section) => [
      `## ${section.title}`,
      section.introduction,
      ...section.all.map((exported) => describe(exported, links)),
    ]),
  ]);
}

function contents({ title, all }: { readonly title: string; readonly all: readonly Exported[] }): string {
  const names = all.map(({ name }) => `[${name}](#${anchor(name)})`);
  return `- [${title}](#${anchor(title)}): ${names.join(", ")}`;
}

/** Returns the name of the bundled module that declares the types of a file, or of the file. */
const keyOf = (file: string) => /^modules\/mod_([^/]+)/.exec(file)?.[1] ?? basename(file, ".ts");

function titleOf(file: string): string {
  const key = keyOf(file);
  return titles[key] ?? `${key.charAt(0).toUpperCase()}${key.slice(1).replaceAll("_", " ")}`;
}

const introduction = `For authors of modules: every type that a module uses. [Write a module](../guides/write-a-module.md) is the introduction.

\`import type { ... } from "modhost"\` has the names of this page, and so has \`"modhost/types"\`, which contains only types. The
types of bundled modules are imported from elsewhere; their sections say from where.

Other pages: [events](events.md), [options of the host](options.md), [errors](errors.md), the [HTTP client](net-http.md) and
[functions for forms, URLs and HTML](net-http-helpers.md) of \`modhost/net/http\`, the test kit [\`modhost/testing\`](testing.md).
"Spec n" is part n of the HTTP module framework document, whose statements are in [the contract](contract.md).`;
