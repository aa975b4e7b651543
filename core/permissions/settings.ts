/** Declares and checks the option `modules`: how each module runs, and what it is granted. */
import type { ModulePermissions, ModuleRun, OptionDeclaration } from "../types.ts";
import { moduleName } from "../util/module_name.ts";
import { isEnforced, kindNames, permissionFields, permissionKinds } from "./kinds.ts";
import { limitFields, type ModuleLimits } from "./limits.ts";
import { itemsOf } from "./set.ts";

/** Whether the namespaces of the kernel are used in addition, where they are to be had. */
export type Namespaces = "auto" | "required" | "off";

/** An entry of the option `modules`, as it is read. */
export interface ModuleSettings {
  readonly run?: ModuleRun;
  readonly grant?: ModulePermissions;
  readonly limits?: ModuleLimits;
  readonly audit: boolean;
  readonly namespaces: Namespaces;
  readonly spare: boolean;
}

export const modulesOption = {
  type: "object",
  protects: true,
  per_host: false,
  applies: "live",
  example: { shop: { run: "sandboxed", grant: { connect: ["api.example.org:443"], write: ["data"] } } },
  entries: {
    run: {
      type: "enum",
      values: ["trusted", "isolated", "sandboxed"],
      required: false,
      describe:
        "Where it runs: in the server (trusted), in a worker thread (isolated), or in a process of its own that the kernel restricts (sandboxed). If not set, it is trusted, unless modules_isolated names it or it declares itself isolated.",
    },
    grant: {
      type: "object",
      required: false,
      fields: permissionFields,
      describe:
        "Permissions of the module. A sandboxed module may do nothing else. For an isolated module, a grant restricts env and call only.",
    },
    limits: {
      type: "object",
      required: false,
      fields: limitFields,
      describe:
        "Limits for what a sandboxed module uses of the machine. For an isolated one, memory, requests and log_lines apply once limits is set.",
    },
    audit: {
      type: "boolean",
      default: false,
      describe: "Refuse nothing, and list what would have been refused. The module is then not restricted.",
    },
    namespaces: {
      type: "enum",
      values: ["auto", "required", "off"],
      default: "auto",
      describe:
        "Whether a sandboxed module gets namespaces of the kernel in addition: where they are to be had, in any case, or never.",
    },
    spare: {
      type: "boolean",
      default: false,
      describe:
        "Whether one more process of a sandboxed module is kept ready, which takes over at a reload, after a crash and at a limit.",
    },
  },
  describe:
    "How modules run and what they may do, by the name of the module. Which modules are loaded is set by modules_enabled.",
} as const satisfies OptionDeclaration;

/** A wrong value in the option `modules`. */
export interface SettingsProblem {
  readonly path: string;
  readonly value: unknown;
  /** Ends the sentence "x is y, but ...". */
  readonly allowed: string;
}

const without: ModuleSettings = { audit: false, namespaces: "auto", spare: false };

/** Returns the entry of a module in the value of the option. */
export function settingsOf(modules: unknown, name: string): ModuleSettings {
  const entries = (modules ?? {}) as Readonly<Record<string, ModuleSettings>>;
  return Object.hasOwn(entries, name) ? (entries[name] as ModuleSettings) : without;
}

/**
 * Returns the problems of a value whose fields have the right types; a field of another type is
 * undefined in it.
 */
export function settingsProblems(modules: unknown): SettingsProblem[] {
  const entries = Object.entries((modules ?? {}) as Readonly<Record<string, ModuleSettings | undefined>>);
  return entries.flatMap(([name, settings]) => {
    const path = `modules.${name}`;
    const bare = moduleName(name);
    if (bare !== name)
      return [{ path, value: settings, allowed: `the name is the one that modhost modules lists: write ${bare}` }];
    return permissionProblems(settings?.grant, `${path}.grant`);
  });
}

/** Returns the problems of the items of permissions whose fields have the right types. */
export function permissionProblems(permissions: ModulePermissions | undefined, path: string): SettingsProblem[] {
  if (permissions === undefined) return [];
  const { call, ...others } = permissions;
  const functions = Object.entries(call ?? {});
  const wrong = functions.filter(([, names]) => names !== true && !isTexts(names));
  const right = Object.fromEntries(functions.filter(([, names]) => names === true || isTexts(names)));
  return [
    ...wrong.map(([module, value]) => {
      return {
        path: `${path}.call.${module}`,
        value,
        allowed: 'it must be true or a list of functions, such as ["pin.ls"]',
      };
    }),
    ...itemsOf({ ...others, call: right }).flatMap(({ kind, item }) => {
      const allowed = permissionKinds[kind].fault(item);
      if (allowed === undefined) return [];
      const dot = item.indexOf(".");
      const [at, value] = kind === "call" ? [`.${item.slice(0, dot)}`, item.slice(dot + 1)] : ["", item];
      return [{ path: `${path}.${kind}${at}`, value, allowed }];
    }),
  ];
}

const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((each) => typeof each === "string");

/**
 * Returns the granted kinds that are not enforced for an isolated module. `options` is none of
 * them, because a grant hands options over that it would not get otherwise.
 */
export function unenforcedKinds(grant: ModulePermissions): string[] {
  const kinds = new Set(itemsOf(grant).map(({ kind }) => kind));
  return kindNames.filter((kind) => kinds.has(kind) && kind !== "options" && !isEnforced(kind, "isolated"));
}
