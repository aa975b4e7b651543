/**
 * Finds the commands and checks of modules, bundled or not. Next to the file of a module,
 * `cli/NAME.ts` (or `.js`) exports the command NAME as `command`, and `cli/doctor.ts` exports
 * `checks` of `modhost doctor`. Such a file runs with the rights of the operator. It is imported
 * when its command is called, and when the checks or the script for completion need it. The file of
 * a sandboxed module is never imported.
 */
import { existsSync, readdirSync } from "node:fs";
import { join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { loadConfig } from "../config/index.ts";
import type { ModuleFolder } from "../host/module_folders.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { explainMissing } from "../util/missing_package.ts";
import { moduleName } from "../util/module_name.ts";
import { bundledModules } from "../util/package.ts";
import type { Command } from "./command.ts";
import type { Check, Finding } from "./doctor/check.ts";

/** Where to search for the configuration. */
export interface ConfigSearch {
  readonly configPath?: string | undefined;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

interface CommandFile {
  readonly name: string;
  readonly file: string;
  readonly module: string;
}

/** A command as the help of the program lists it. */
export type CommandSummary = Pick<Command, "name" | "arguments" | "help">;

/** Why a file cannot be used, and what to do about it. */
export type Fault = Pick<Finding, "text" | "remedy">;

/** The name of the file whose `checks` belong to the command `doctor` of the program itself. */
const DOCTOR = "doctor";

export class ModuleCommands {
  readonly #search: ConfigSearch | undefined;
  readonly #taken: ReadonlySet<string>;
  #bundledFiles: readonly CommandFile[] | undefined;
  #configured: Promise<readonly CommandFile[]> | undefined;
  /** Files of sandboxed modules by the names of their commands. */
  readonly #withheld = new Map<string, CommandFile>();
  readonly #faults = new Map<string, Fault>();

  /**
   * `taken` are names of the program's own commands. Without a `search` only bundled modules are
   * included.
   */
  constructor(taken: readonly string[], search?: ConfigSearch) {
    this.#taken = new Set(taken);
    this.#search = search;
  }

  /** Files found so far that cannot be used. */
  get faults(): readonly Fault[] {
    return [...this.#faults.values()];
  }

  get #bundled(): readonly CommandFile[] {
    this.#bundledFiles ??= bundledFolders().flatMap(filesOf);
    return this.#bundledFiles;
  }

  /** Undefined when no bundled module has a command of this name. */
  async bundled(name: string): Promise<Command | undefined> {
    const found = this.#bundled.find((each) => each.name === name && name !== DOCTOR);
    return found && commandOf(found);
  }

  /**
   * Returns undefined if no other module has a command of this name. @throws Error when its file is
   * wrong, or belongs to a sandboxed module
   */
  async configured(name: string): Promise<Command | undefined> {
    const found = (await this.#others()).find((each) => each.name === name && name !== DOCTOR);
    const withheld = this.#withheld.get(name);
    if (found === undefined && withheld !== undefined && name !== DOCTOR) {
      const { module } = withheld;
      throw new Error(
        `The command ${name} belongs to the module ${module}, which is sandboxed, and commands run with your rights: to allow it, set modules.${module}.run to trusted`,
      );
    }
    if (found === undefined) return undefined;
    return commandOf(found).catch((error: unknown) => {
      const { text, remedy } = faultOf(found, reasonOf(error));
      throw new Error(`${text}: ${remedy}`);
    });
  }

  async names(): Promise<string[]> {
    return [...this.#bundled, ...(await this.#others())].map(({ name }) => name).filter((name) => name !== DOCTOR);
  }

  /**
   * Returns every command with its help. Only files of bundled modules are imported, because to ask
   * for help must not run code of others.
   */
  async listed(): Promise<CommandSummary[]> {
    const others = (await this.#others()).filter(({ name }) => name !== DOCTOR);
    return [
      ...(await this.#commandsOf(this.#bundled)),
      ...others.map(({ name, module }) => ({
        name,
        help: `A command of the module ${module}: modhost ${name} --help explains it`,
      })),
    ];
  }

  /** Returns every command that can be used. */
  async all(): Promise<Command[]> {
    return this.#commandsOf([...this.#bundled, ...(await this.#others())]);
  }

  #commandsOf(files: readonly CommandFile[]): Promise<Command[]> {
    const commands = files.filter(({ name }) => name !== DOCTOR);
    return this.#working(commands, async (file) => [await commandOf(file)]);
  }

  /** Returns the checks of all modules. */
  async checks(): Promise<Check[]> {
    const files = [...this.#bundled, ...(await this.#others())].filter(({ name }) => name === DOCTOR);
    return this.#working(files, checksOf);
  }

  async #working<T>(files: readonly CommandFile[], read: (file: CommandFile) => Promise<readonly T[]>): Promise<T[]> {
    const found = files.map((file) =>
      read(file)
        .catch(ofMissingPackage)
        .catch((error: unknown) => {
          this.#faults.set(file.file, faultOf(file, reasonOf(error)));
          return [];
        }),
    );
    return (await Promise.all(found)).flat();
  }

  #others(): Promise<readonly CommandFile[]> {
    this.#configured ??= this.#findConfigured();
    return this.#configured;
  }

  async #findConfigured(): Promise<readonly CommandFile[]> {
    if (this.#search === undefined) return [];
    const { configPath, cwd, env } = this.#search;
    const found: CommandFile[] = [];
    try {
      const config = await loadConfig({ path: configPath, cwd, env });
      // This import loads the code that finds modules, which most commands do not need.
      const { configuredFolders, installHooks } = await import("../host/module_folders.ts");
      // Command files import `modhost/cli`, which may not be installed in their folder.
      installHooks();
      const [sandboxed = [], usable = []] = [true, false].map((isSandboxed) =>
        configuredFolders(config).filter((folder) => folder.isSandboxed === isSandboxed),
      );
      for (const each of sandboxed.flatMap(filesOf)) this.#withheld.set(each.name, each);
      for (const each of usable.flatMap(filesOf)) {
        const owner = this.#ownerOf(each.name, found);
        if (owner === undefined) found.push(each);
        else this.#faults.set(each.file, faultOf(each, `${owner} has a command ${each.name} already`));
      }
    } catch (error) {
      const text = `The commands of configured modules are unknown: ${reasonOf(error)}`;
      this.#faults.set("", { text, remedy: "correct the configuration" });
    }
    return found;
  }

  /** Returns the owner of a command of this name, if there is one. Every module may have checks. */
  #ownerOf(name: string, found: readonly CommandFile[]): string | undefined {
    if (name === DOCTOR) return undefined;
    if (this.#taken.has(name)) return "modhost itself";
    const other = [...this.#bundled, ...found].find((each) => each.name === name);
    return other && `the module ${other.module}`;
  }
}

type CommandFolder = Pick<ModuleFolder, "module" | "path">;

const fileName = /^([a-z][a-z0-9-]*)\.(ts|js)$/;

/** Returns the bundled modules, whether they are enabled or not. */
function bundledFolders(): CommandFolder[] {
  const folders = readdirSync(bundledModules).sort();
  return folders.map((folder) => ({ module: moduleName(folder), path: join(bundledModules, folder) }));
}

/**
 * Returns the command files of a module. If both a source and its compiled file exist, the source
 * is used, as for the file of a module.
 */
function filesOf({ module, path }: CommandFolder): CommandFile[] {
  const folder = join(path, "cli");
  if (!existsSync(folder)) return [];
  const files = new Map<string, CommandFile>();
  for (const entry of readdirSync(folder).sort()) {
    const [, name, extension] = fileName.exec(entry) ?? [];
    // Node.js does not run TypeScript in packages.
    if (extension === "ts" && folder.includes(`${sep}node_modules${sep}`)) continue;
    if (name !== undefined) files.set(name, { name, module, file: join(folder, entry) });
  }
  return [...files.values()];
}

async function commandOf({ file, name, module }: CommandFile): Promise<Command> {
  const exported = await imported(file, module);
  const command = (exported.command ?? {}) as Command;
  if (typeof command.run !== "function" || typeof command.help !== "string")
    throw new Error("it exports no `command` with `help` and `run`");
  if (command.name !== name) throw new Error(`its command has the name ${command.name}, and the file has ${name}`);
  // A command imports most of its code when it is called.
  const explained = <T>(call: () => T | Promise<T>) =>
    Promise.try(call).catch((error: unknown) => {
      throw explainMissing(error, module, file);
    });
  return {
    ...command,
    run: (context) => explained(() => command.run(context)),
    ...(command.helpText && { helpText: () => explained(() => command.helpText?.() ?? "") }),
    ...(command.subcommands && {
      subcommands: () => explained(() => command.subcommands?.() ?? []).catch(ofMissingPackage),
    }),
  };
}

/** An installation without optional packages does not use the commands that need them. */
function ofMissingPackage(error: unknown): [] {
  if (ModhostError.is(error) && error.code === "PACKAGE_MISSING") return [];
  throw error;
}

async function checksOf({ file, module }: CommandFile): Promise<readonly Check[]> {
  const { checks } = await imported(file, module);
  const isCheck = (each: Partial<Check>) => typeof each.name === "string" && typeof each.run === "function";
  if (!Array.isArray(checks) || !checks.every(isCheck)) throw new Error("it exports no list `checks`");
  return checks;
}

async function imported(file: string, module: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    throw explainMissing(error, module, file);
  }
}

function faultOf({ file, module }: CommandFile, reason: string): Fault {
  const text = `${file} of the module ${module} contributes nothing: ${reason}`;
  return { text, remedy: "correct or rename the file, or disable the module" };
}
