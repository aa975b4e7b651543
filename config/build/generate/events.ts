/** Generates `docs/reference/events.md`: the events of the host and their data. */
import ts from "typescript";
import { anchor, code, page, table } from "./markdown.ts";
import { eventTypes, tableOfEvents, typeLinks } from "./module_api.ts";
import type { Exported, Sources } from "./sources.ts";
import { commentOf, describe } from "./types.ts";

const file = "core/types/events.ts";

export function eventsPage(sources: Sources): string {
  const all = eventTypes(sources);
  const links = new Map([...typeLinks(sources)].map(([name, address]) => [name, address.replace(/^events\.md/, "")]));
  const kind = (name: string, word: string) => rowsOf(named(all, name), word, links);
  const data = all.filter(({ name }) => !tableOfEvents.includes(name));
  return page("Events", file, [
    introduction,
    table(["Event", "How", "Data", "When"], [...kind("FiredEvents", "fired"), ...kind("AnnouncedEvents", "announced")]),
    own,
    "## Data of the events",
    ...data.map((exported) => describe(exported, links)),
  ]);
}

function named(all: readonly Exported[], name: string): ts.InterfaceDeclaration {
  const found = all.find((exported) => exported.name === name);
  if (found === undefined || !ts.isInterfaceDeclaration(found.node))
    throw new Error(`${file} has no interface ${name}`);
  return found.node;
}

function rowsOf(node: ts.InterfaceDeclaration, how: string, links: ReadonlyMap<string, string>): string[][] {
  return node.members.filter(ts.isPropertySignature).map((member) => {
    const type = member.type?.getText() ?? "";
    const shown = links.has(type) ? `[${code(type)}](${links.get(type) ?? anchor(type)})` : "nothing";
    return [code(member.name.getText().replaceAll('"', "")), how, shown, commentOf(member)];
  });
}

const introduction = `For authors of modules: \`module.hook(event, handler, priority)\` adds a hook, which is removed together with its module. Hooks with a higher
priority run first, and hooks with the same priority in the order in which they were added. The default is 0.

- **Fired** events have a result: the host calls one hook after the other until one returns something other than \`undefined\` or
  \`null\`. It awaits promises.
- **Announced** events have no result: the host calls every hook. If a hook throws or rejects, that is logged, and the others still run.

An event of a request reaches the hooks of the request's host and those of the whole server.`;

const own = `A module may have events of its own, with any names. \`module.fire_event(name, data)\` returns the first result, \`module.announce_event(name, data)\`
calls all hooks, and \`module.has_hooks(name)\` says whether there are any.`;
