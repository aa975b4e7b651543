/**
 * What the compiler tells authors who write TypeScript, for the log of those who write JavaScript: names that mean
 * nothing to the host where another one is meant.
 */
import type { HostEvents, ModuleDefinition, OptionDeclaration, OptionDeclarations } from "../types.ts";
import { nearest } from "../util/nearest.ts";

const definition: readonly (keyof ModuleDefinition)[] = [
  "load",
  "options",
  "depends",
  "global",
  "isolated",
  "shared",
  "sticky",
];
const declaration: readonly (keyof OptionDeclaration)[] = [
  "type",
  "default",
  "min",
  "max",
  "values",
  "unit",
  "example",
  "describe",
  "per_host",
  "entries",
  "required",
  "secret",
  "applies",
];
const callbacks = ["load", "ready", "save", "restore", "unload", "add_host", "changed"];
const kinds = ["http", "http-middleware", "net", "metrics", "admin", "backup", "health"];
const events: readonly string[] = Object.keys({
  "http-error": true,
  "directory-index": true,
  "acme-challenge": true,
  "tls-connection": true,
  "token-scope": true,
  "http-finished": true,
  "server-started": true,
  "server-leaving": true,
  "server-stopping": true,
  "server-stopped": true,
  "module-loaded": true,
  "module-unloaded": true,
  "module-reloaded": true,
  "module-quarantined": true,
  "server-changed": true,
  "config-changed": true,
  "certificates-changed": true,
  "logs-reopened": true,
} satisfies Record<keyof HostEvents, true>);

/** Other names for what a module file exports. */
const aliases: Readonly<Record<string, string>> = { dependencies: "depends", requires: "depends", config: "options" };

/** Exports of a module file that are near to one that the host reads. */
export function exportHints(exported: object): string[] {
  return Object.keys(exported).flatMap((name) => {
    if (definition.includes(name as never)) return [];
    const near = nearest(name, [...definition, ...Object.keys(aliases)]);
    const meant = near === undefined ? undefined : (aliases[near] ?? near);
    return meant === undefined ? [] : [`exports ${name}, which the host does not read: did you mean ${meant}?`];
  });
}

/** Fields in the declarations of options that are near to one that means something. */
export function declarationHints(options: OptionDeclarations): string[] {
  return Object.entries(options).flatMap(([option, fields]) =>
    Object.keys(fields ?? {}).flatMap((name) => {
      const meant = declaration.includes(name as never) ? undefined : nearest(name, declaration);
      return meant === undefined
        ? []
        : [`declares the option ${option} with the field ${name}: did you mean ${meant}?`];
    }),
  );
}

/** A function that the module put on its object under a name by which the host calls nothing. */
export function callbackHints(module: object, own: ReadonlySet<string>): string[] {
  return Object.entries(module).flatMap(([name, value]) => {
    if (own.has(name) || typeof value !== "function") return [];
    const meant = nearest(name, callbacks);
    const end = meant === undefined ? `it calls ${callbacks.join(", ")}` : `did you mean module.${meant}?`;
    return [`sets module.${name}, which the host never calls: ${end}`];
  });
}

/** An event that nobody fires, next to one of the host. */
export function eventHint(event: string): string | undefined {
  const meant = events.includes(event) ? undefined : nearest(event.toLowerCase().replaceAll("_", "-"), events);
  return meant === undefined ? undefined : `hooks ${event}, which is no event of the host: did you mean ${meant}?`;
}

/** A kind of `provides` that no loaded module takes. */
export function kindHint(kind: string): string {
  if (kind.startsWith("http") && kinds.includes(kind)) {
    return `provides "${kind}", but the module http is not loaded: write module.depends("http") before it`;
  }
  const meant = nearest(kind.toLowerCase().replaceAll("_", "-"), kinds);
  const end = meant === undefined ? `the host's own kinds are ${kinds.join(", ")}` : `did you mean "${meant}"?`;
  return `provides "${kind}", which no loaded module takes: ${end}`;
}

/** An option that nobody declares, next to one that the module declares. */
export function optionHint(name: string, declared: OptionDeclarations): string | undefined {
  const meant = nearest(name, Object.keys(declared));
  return meant === undefined
    ? undefined
    : `reads the option ${name}, which it does not declare: did you mean ${meant}?`;
}
