/**
 * The kinds of permissions. Parsing, checks, texts, the options `modules.NAME.grant` and the
 * reference are derived from this table.
 */
import type { ModuleRun, OptionDeclaration, PermissionKind } from "../types.ts";
import { isOwnVariable } from "../util/own_variables.ts";
import { parseHostPort } from "./hosts.ts";
import { DATA } from "./paths.ts";

/** A kind of permissions; an item is one path, host, name, function or port as text. */
export interface KindEntry {
  /** The form of its value in a declaration and in a grant. */
  readonly form: "texts" | "ports" | "functions" | "flag";
  /** One sentence for operators. */
  readonly help: string;
  readonly example: unknown;
  /** Whether the host decides about each use. Otherwise the kernel does, which counts nothing. */
  readonly isDecidedByHost: boolean;
  /** Returns why an item is wrong, as the end of the sentence "x is y, but ...". */
  fault(item: string): string | undefined;
  /** Continues the sentence "it may ...". */
  may(item: string): string;
}

/** The item of the kind `addons`, which has no others. */
export const ANY = "*";

/** Options of the server that contain those of all modules. */
export const optionsOfModules: ReadonlySet<string> = new Set(["hosts", "modules"]);

const functionPath = /^[\w$]+(?:\.[\w$]+)*$/;

export const permissionKinds: Readonly<Record<PermissionKind, KindEntry>> = {
  read: {
    form: "texts",
    help: "Files and folders that it may read, in addition to its own folder and its packages: absolute paths, or relative to its own folder.",
    example: ["/srv/pictures"],
    isDecidedByHost: false,
    fault: (item) =>
      item === DATA
        ? "the word data is only for write, which includes reading: write ./data for a folder"
        : pathFault(item),
    may: (item) => `read ${item}`,
  },
  write: {
    form: "texts",
    help: "Folders in which it may read, create, change and remove files; the word `data` stands for its own folder `module_data/NAME` below `data_path`.",
    example: [DATA],
    isDecidedByHost: false,
    fault: pathFault,
    may: (item) => `write ${item === DATA ? "its own data folder" : item}`,
  },
  connect: {
    form: "texts",
    help: "Hosts that it may connect to, each with a port; `*` as the first label stands for one label. Private, loopback and link-local addresses must be granted as addresses.",
    example: ["api.example.org:443"],
    isDecidedByHost: true,
    fault: (item) => {
      const parsed = parseHostPort(item);
      return typeof parsed === "string" ? parsed : undefined;
    },
    may: (item) => `connect to ${item}`,
  },
  env: {
    form: "texts",
    help: "Environment variables that it gets.",
    example: ["SHOP_KEY"],
    isDecidedByHost: true,
    fault: variableFault,
    may: (item) => `see the environment variable ${item}`,
  },
  options: {
    form: "texts",
    help: "Options that it may read, in addition to those that it declares and those that begin with its name.",
    example: ["http_external_url"],
    isDecidedByHost: true,
    fault: (item) => {
      if (!/^[a-z][a-z0-9_]*$/.test(item)) return "it must be the name of an option";
      return optionsOfModules.has(item)
        ? `${item} contains the options of other modules: name the options themselves`
        : undefined;
    },
    may: (item) => `read the option ${item}`,
  },
  call: {
    form: "functions",
    help: "Modules that it may call: for each the names of the functions, such as `add` or `pin.ls`, or true for all of them.",
    example: { catalog: ["find", "prices.list"] },
    isDecidedByHost: true,
    fault: (item) => {
      const name = item.slice(item.indexOf(".") + 1);
      return name === ANY || functionPath.test(name) ? undefined : "it must be the name of a function, such as pin.ls";
    },
    may: (item) => (item.endsWith(`.${ANY}`) ? `call every function of ${item.slice(0, -2)}` : `call ${item}`),
  },
  listen: {
    form: "ports",
    help: "TCP ports that it may listen on, at any address of the machine.",
    example: [8080],
    isDecidedByHost: true,
    fault: (item) => (item === "0" ? "it must be a port from 1 to 65535" : undefined),
    may: (item) => `listen on port ${item}`,
  },
  run: {
    form: "texts",
    help: "Programs that it may run: absolute paths, or relative to its own folder. Without any, it starts no process.",
    example: ["/usr/bin/convert"],
    isDecidedByHost: false,
    fault: (item) =>
      item.includes("/") ? pathFault(item) : "it must be the path of the program, such as /usr/bin/convert",
    may: (item) => `run ${item}`,
  },
  addons: {
    form: "flag",
    help: "Whether it may load native addons.",
    example: true,
    isDecidedByHost: false,
    fault: () => undefined,
    may: () => "load native addons",
  },
};

/** All kinds, in the order in which they are shown. */
export const kindNames = Object.keys(permissionKinds) as readonly PermissionKind[];

/**
 * Kinds that the host can enforce for a worker thread, which has all other rights of the server.
 */
const inThread: ReadonlySet<PermissionKind> = new Set<PermissionKind>(["env", "call"]);

/** Whether a module that runs in this way is refused what its grant does not contain. */
export function isEnforced(kind: PermissionKind, run: ModuleRun): boolean {
  return run === "sandboxed" || (run === "isolated" && inThread.has(kind));
}

/** The fields of `modules.NAME.grant`, which are those of a declaration as well. */
export const permissionFields: Readonly<Record<PermissionKind, OptionDeclaration>> = Object.fromEntries(
  kindNames.map((kind) => [kind, fieldOf(permissionKinds[kind])]),
) as Record<PermissionKind, OptionDeclaration>;

function fieldOf({ form, help, example }: KindEntry): OptionDeclaration {
  const type = ({ texts: "strings", ports: "ports", functions: "object", flag: "boolean" } as const)[form];
  return { type, required: false, describe: help, example };
}

function pathFault(item: string): string | undefined {
  if (item === "" || item.includes("\0")) return "it must be a path";
  if (item.startsWith("~")) return "the shell alone knows ~: write the whole path";
  return item.includes("*") ? "it must be one path: a folder includes everything below it" : undefined;
}

/** Variables that change what a process loads and how it is restricted. */
const loaderVariable =
  /^(?:NODE_|LD_|DYLD_|UV_|OPENSSL_|SSL_|MALLOC_|GLIBC_|GCONV_PATH$|GETCONF_DIR$|LOCPATH$|NLSPATH$|NIS_PATH$|HOSTALIASES$|LOCALDOMAIN$|RES_|RESOLV_|TZDIR$|(?:BASH_)?ENV$|TMPDIR$)/i;

function variableFault(item: string): string | undefined {
  if (!/^[A-Za-z_]\w*$/.test(item)) return "it must be the name of an environment variable";
  if (isOwnVariable(item)) return "it sets an option of the server: grant the option";
  return loaderVariable.test(item) ? "it would change how the module's own process is started" : undefined;
}
