/**
 * The names that a sandboxed module may use without a grant. A stranger's module must neither pass
 * for another one nor get what is meant for others, so its names begin with its own.
 */
import { appName } from "../http/routing/app_urls.ts";
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
 * separators. For `http_shop` the names of `shop` are its own, too.
 */
export function isNamedFor(module: string, name: string, separators = "_"): boolean {
  return [module, appName(module)].some(
    (own) => name === own || (name.startsWith(own) && separators.includes(name.charAt(own.length))),
  );
}

const eventSeparators = "-_./:";

/** Whether a sandboxed module may announce an event. Hooks trust the data of all others. */
export const mayAnnounce = (module: string, event: string): boolean => isNamedFor(module, event, eventSeparators);

/** Whether a sandboxed module may hook an event: its own, or a public one of the host. */
export function mayHook(module: string, depends: readonly string[], event: string): boolean {
  if (publicEvents.has(event)) return true;
  return [module, ...depends.filter((name) => name !== "http")].some((name) =>
    isNamedFor(name, event, eventSeparators),
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
 * module may read.
 */
export function optionsFault(
  module: string,
  options: OptionDeclarations,
  granted: readonly string[],
): RuleFault | undefined {
  for (const [name, { protects, keys }] of Object.entries(options)) {
    // The server would not start without a module that protects apps of others.
    if (protects === true || keys !== undefined)
      return [`declare the option ${name} with protects or keys`, "leave them out"];
    if (isNamedFor(module, name) || granted.includes(name)) continue;
    const own = appName(module);
    return [`declare the option ${name}`, `name it ${own}_${name}, or grant it with modules.${module}.grant.options`];
  }
  return undefined;
}

const appNamePattern = /^[\w.~-]+$/;

/**
 * Returns what an app of a sandboxed module has without a right to it. `placed`: the names of apps
 * whose paths the operator has set.
 */
export function appFault(
  module: string,
  { settings }: ProvidedApp,
  placed: ReadonlySet<string>,
): RuleFault | undefined {
  const { name = appName(module), default_path = `/${name}`, priority = 0 } = settings;
  if (!appNamePattern.test(name) || !(isNamedFor(module, name, "_-") || placed.has(name)))
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
  { depends, placed }: { readonly depends: readonly string[]; readonly placed: ReadonlySet<string> },
): RuleFault | undefined {
  const scope = scopes.find(({ kind }) => !isNamedFor(module, kind, "_-"));
  if (scope !== undefined)
    return [`declare token scopes of the kind ${scope.kind}`, `begin the kind with ${appName(module)}`];
  const event = events.find((name) => !mayHook(module, depends, name));
  if (event !== undefined) return [`hook ${event}`, hookRemedy(module)];
  return apps.map((app) => appFault(module, app, placed)).find((fault) => fault !== undefined);
}
