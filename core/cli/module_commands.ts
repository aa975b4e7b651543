/**
 * Commands that bundled modules bring: the file `cli/NAME.ts` in the folder of a module exports the command NAME as
 * `command`. It is imported when it is named, or when help lists all.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundledModules, isClone } from "../util/package.ts";
import type { Command } from "./command.ts";

const extension = isClone ? ".ts" : ".js";

function files(): Map<string, string> {
  const found = new Map<string, string>();
  for (const module of readdirSync(bundledModules).sort()) {
    const folder = join(bundledModules, module, "cli");
    for (const file of existsSync(folder) ? readdirSync(folder).sort() : []) {
      const [, name] = /^([a-z]+)\.[jt]s$/.exec(file) ?? [];
      if (name !== undefined && file.endsWith(extension)) found.set(name, join(folder, file));
    }
  }
  return found;
}

async function load(file: string): Promise<Command> {
  const { command }: { command: Command } = await import(pathToFileURL(file).href);
  return command;
}

export function moduleCommandNames(): string[] {
  return [...files().keys()];
}

/** Undefined when no module brings a command of this name. */
export async function moduleCommand(name: string): Promise<Command | undefined> {
  const file = files().get(name);
  return file === undefined ? undefined : load(file);
}

export function moduleCommands(): Promise<Command[]> {
  return Promise.all(files().values().map(load));
}
