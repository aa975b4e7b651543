/** `docs/reference/events.md`: the events of the host, and what hooks are given. */
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
    "## What hooks are given",
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

const introduction = `\`module.hook(event, handler, priority)\` adds a hook; it goes with its module. Hooks of a higher priority are asked first,
those of the same one in the order in which they were added; 0 is the default.

- **Fired**: hooks are asked one after the other until one answers with something other than \`undefined\` or \`null\`,
  which then is the result. A promise is waited for.
- **Announced**: every hook is told, and its answer ignored. One that throws or rejects is logged and stops nothing.

An event of a request reaches hooks of the request's host and those of the whole server.`;

const own = `A module's own events are named as it likes and go through \`module.fire_event(name, data)\`, which gives the first
answer, or \`module.announce_event(name, data)\`. \`module.has_hooks(name)\` tells whether anybody listens.`;
