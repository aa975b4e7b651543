/**
 * Hints for authors who write JavaScript, like those that the compiler gives in TypeScript: names
 * that the host does not know and that resemble known ones.
 */
import type { HostEvents, ModuleDefinition, OptionDeclaration, OptionDeclarations, ProvidedKinds } from "../types.ts";
import { nearest } from "../util/nearest.ts";

const definition: readonly (keyof ModuleDefinition)[] = [
  "load",
  "options",
  "depends",
  "global",
  "isolated",
  "shared",
  "sticky",
  "permissions",
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
const kinds = Object.keys({
  http: true,
  "http-middleware": true,
  net: true,
  metrics: true,
  health: true,
  admin: true,
  backup: true,
  "start-page": true,
  "token-scope": true,
} satisfies Record<keyof ProvidedKinds, true>);
/** The events of the host. */
export const hostEvents: readonly string[] = Object.keys({
  "http-error": true,
  "directory-index": true,
  "acme-challenge": true,
  "tls-connection": true,
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

/** Other names that authors may use for the exports of a module file. */
const aliases: Readonly<Record<string, string>> = { dependencies: "depends", requires: "depends", config: "options" };

/** Returns hints for exports of a module file that resemble one that the host reads. */
export function exportHints(exported: object): string[] {
  return Object.keys(exported).flatMap((name) => {
    if (definition.includes(name as never)) return [];
    const near = nearest(name, [...definition, ...Object.keys(aliases)]);
    const meant = near === undefined ? undefined : (aliases[near] ?? near);
    return meant === undefined ? [] : [`exports ${name}, which the host does not read: did you mean ${meant}?`];
  });
}

/** Returns hints for fields of option declarations that resemble known ones. */
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

/**
 * Returns hints for functions that the module assigned to its object under a name that the host
 * never calls.
 */
export function callbackHints(module: object, own: ReadonlySet<string>): string[] {
  return Object.entries(module).flatMap(([name, value]) => {
    if (own.has(name) || typeof value !== "function") return [];
    const meant = nearest(name, callbacks);
    const end = meant === undefined ? `it calls ${callbacks.join(", ")}` : `did you mean module.${meant}?`;
    return [`sets module.${name}, which the host never calls: ${end}`];
  });
}

/** Returns a hint for an event that is never fired and resembles one of the host. */
export function eventHint(event: string): string | undefined {
  const meant = hostEvents.includes(event) ? undefined : nearest(event.toLowerCase().replaceAll("_", "-"), hostEvents);
  return meant === undefined ? undefined : `hooks ${event}, which is no event of the host: did you mean ${meant}?`;
}

/** Returns a hint for a kind of `provides` that no loaded module receives. */
export function kindHint(kind: string): string {
  if (kind.startsWith("http") && kinds.includes(kind)) {
    return `provides "${kind}", but the module http is not loaded: write module.depends("http") before it`;
  }
  const meant = nearest(kind.toLowerCase().replaceAll("_", "-"), kinds);
  const end = meant === undefined ? `the host's own kinds are ${kinds.join(", ")}` : `did you mean "${meant}"?`;
  return `provides "${kind}", which no loaded module takes: ${end}`;
}

/** Returns a hint for an undeclared option that resembles one that the module declares. */
export function optionHint(name: string, declared: OptionDeclarations): string | undefined {
  const meant = nearest(name, Object.keys(declared));
  return meant === undefined
    ? undefined
    : `reads the option ${name}, which it does not declare: did you mean ${meant}?`;
}
