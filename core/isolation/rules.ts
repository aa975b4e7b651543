/**
 * The names that a sandboxed module may use without a grant. A stranger's module must neither pass
 * for another one nor get what is meant for others, so its names begin with its own.
 */
import { appName } from "../http/routing/app_urls.ts";
import { hostEvents } from "../module/hints.ts";
import type { OptionDeclarations } from "../types.ts";
import type { Loaded, ProvidedApp } from "./messages.ts";

/** Events of the host that a sandboxed module may hook: their data name modules at most. */
const publicEvents: ReadonlySet<string> = new Set([
  "server-started",
  "server-leaving",
  "server-stopping",
  "server-stopped",
  "module-loaded",
  "module-unloaded",
  "module-reloaded",
]);

/**
 * Whether a name belongs to a module: it is the module's, or begins with it and one of these
 * separators. For `http_shop` the names of `shop` are its own, too. A name that fits the name of
 * one of the `others` better belongs to that module: `shop_admin_key` to `shop_admin`.
 */
export function isNamedFor(module: string, name: string, separators = "_", others: readonly string[] = []): boolean {
  const own = fitOf(module, name, separators);
  return own > 0 && others.every((other) => fitOf(other, name, separators) <= own);
}

/** Returns how well a name fits a module; 0 if it does not belong to it. */
function fitOf(module: string, name: string, separators: string): number {
  const isFor = (own: string) => name === own || (name.startsWith(own) && separators.includes(name.charAt(own.length)));
  const app = appName(module);
  // Between `shop` and `http_shop`, names of `shop` belong to the former.
  return Math.max(isFor(module) ? 2 * module.length + 1 : 0, isFor(app) ? 2 * app.length : 0);
}

const eventSeparators = "-_./:";

/**
 * Whether a sandboxed module may announce an event. Hooks trust the data of all others. A module
 * named `config` must not announce `config-changed`.
 */
export const mayAnnounce = (module: string, event: string, others?: readonly string[]): boolean =>
  !hostEvents.includes(event) && isNamedFor(module, event, eventSeparators, others);

/** Whether a sandboxed module may hook an event: its own, or a public one of the host. */
export function mayHook(
  module: string,
  depends: readonly string[],
  event: string,
  others: readonly string[] = [],
): boolean {
  if (publicEvents.has(event)) return true;
  if (hostEvents.includes(event)) return false;
  const known = [module, ...depends.filter((name) => name !== "http")];
  return known.some((name) =>
    isNamedFor(
      name,
      event,
      eventSeparators,
      others.filter((other) => !known.includes(other)),
    ),
  );
}

/** Whether a sandboxed module gets an option of the host: its own apps need their paths. */
export const isNeeded = (option: string): boolean => option === "http_paths";

export const eventRemedy = (module: string): string =>
  `begin the name of the event with the module's own, such as ${appName(module)}-changed`;

export const hookRemedy = (module: string): string =>
  `it can hook its own events (${appName(module)}-...), those of modules that it depends on, and ${[...publicEvents].join(", ")}`;

/** An act that a module must not do, and the remedy: the two parts of an error. */
export type RuleFault = readonly [what: string, remedy: string];

/**
 * Returns which option a sandboxed module declares without a right to it. A declaration under the
 * name of another module's option would hand over its value. `granted`: options of others that the
 * module may read. `others`: the names of the other modules.
 */
export function optionsFault(
  module: string,
  options: OptionDeclarations,
  granted: readonly string[],
  others: readonly string[],
): RuleFault | undefined {
  for (const [name, { protects, keys }] of Object.entries(options)) {
    // The server would not start without a module that protects apps of others.
    if (protects === true || keys !== undefined)
      return [`declare the option ${name} with protects or keys`, "leave them out"];
    if (isNamedFor(module, name, "_", others) || granted.includes(name)) continue;
    const own = appName(module);
    return [`declare the option ${name}`, `name it ${own}_${name}, or grant it with modules.${module}.grant.options`];
  }
  return undefined;
}

const appNamePattern = /^[\w.~-]+$/;

/** The names that the rules for what a module provides depend on. */
export interface RuledNames {
  /** The other modules. */
  readonly others: readonly string[];
  /** Apps whose paths the operator has set. */
  readonly placed: ReadonlySet<string>;
  /** Hosts for which the module is not enabled, if it is enabled for some. */
  readonly closedHosts: readonly string[];
}

/** Returns what an app of a sandboxed module has without a right to it. */
export function appFault(
  module: string,
  { host, settings }: ProvidedApp,
  { others, placed, closedHosts }: RuledNames,
): RuleFault | undefined {
  // The apps of a global module are on all hosts.
  if (host === "*" && closedHosts.length > 0)
    return [`provide an app on ${closedHosts[0]}, where it is not enabled`, "enable it there, or leave out global"];
  const { name = appName(module), default_path = `/${name}`, priority = 0 } = settings;
  if (!appNamePattern.test(name) || !(isNamedFor(module, name, "_-", others) || placed.has(name)))
    return [
      `provide an app by the name ${name}`,
      `begin the name with ${appName(module)}_; operators can allow it with http_paths: { ${name}: /${name} }`,
    ];
  const path = default_path.startsWith("/") ? default_path : `/${default_path}`;
  if (!placed.has(name) && path !== `/${name}` && !path.startsWith(`/${name}/`))
    return [`provide an app at ${path}`, `leave default_path out; operators can set http_paths: { ${name}: ${path} }`];
  // Another app at the same path goes first.
  return priority > 0 ? [`give an app the priority ${priority}`, "only priorities up to 0 are allowed"] : undefined;
}

/** Returns what an instance of a sandboxed module has without a right to it. */
export function loadedFault(
  module: string,
  { apps, scopes, events }: Pick<Loaded, "apps" | "scopes" | "events">,
  depends: readonly string[],
  names: RuledNames,
): RuleFault | undefined {
  const { others } = names;
  const scope = scopes.find(({ kind }) => !isNamedFor(module, kind, "_-", others));
  if (scope !== undefined)
    return [`declare token scopes of the kind ${scope.kind}`, `begin the kind with ${appName(module)}`];
  const event = events.find((name) => !mayHook(module, depends, name, others));
  if (event !== undefined) return [`hook ${event}`, hookRemedy(module)];
  return apps.map((app) => appFault(module, app, names)).find((fault) => fault !== undefined);
}
