import { check } from "./check.ts";
import type { Command } from "./command.ts";
import { modules } from "./modules.ts";
import { newModule } from "./new.ts";
import { routes } from "./routes.ts";
import { run } from "./run.ts";

/** Every command of the program; the first one is the default. */
export const commands: readonly [Command, ...Command[]] = [run, check, modules, routes, newModule];
