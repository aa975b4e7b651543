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
    "## Data of events",
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

const introduction = `\`module.hook(event, handler, priority)\` adds a hook. It is removed when its module is unloaded. Hooks with a higher priority
are called first, and hooks with the same priority in the order in which they were added. The default priority is 0.

- **Fired**: hooks are called one after the other until one returns something other than \`undefined\` or \`null\`, which is
  the result. A promise is awaited.
- **Announced**: every hook is called, and its result is ignored. If one throws or rejects, the error is logged, and the
  others are called anyway.

An event of a request reaches hooks of the request's host and those of the whole server.`;

const own = `A module can raise events of its own under any name: \`module.fire_event(name, data)\` returns the first result, and
\`module.announce_event(name, data)\` notifies all hooks. \`module.has_hooks(name)\` returns whether there are any.`;
