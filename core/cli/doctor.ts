import { readFileSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { loadConfig } from "../config/index.ts";
import { type SandboxLayer, sandboxLayers } from "../sandbox/index.ts";
import type { ServerStatus } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { counted } from "../util/text.ts";
import { adminSocket, NoServerError, socketOption, statusOf } from "./admin/client.ts";
import { inspect } from "./check.ts";
import type { Command, CommandContext } from "./command.ts";
import { type Check, type Finding, type Installation, problem, type System } from "./doctor/check.ts";
import { dataChecks } from "./doctor/data_checks.ts";
import { systemChecks } from "./doctor/system_checks.ts";
import { filesArgument, hostOptions } from "./hosted.ts";
import type { ConfigSearch, ModuleCommands } from "./module_commands.ts";
import { columns, type Output } from "./output.ts";

/** The result of a check. */
export interface CheckResult {
  readonly check: string;
  readonly findings: readonly Finding[];
}

/**
 * Returns the command; `modulesOf` returns the commands and checks of the modules of a
 * configuration.
 */
export function doctorOf(modulesOf: (search: ConfigSearch) => ModuleCommands): Command {
  const own = [...systemChecks, ...dataChecks];
  return {
    name: "doctor",
    arguments: filesArgument,
    help: "Find problems of this installation, and say how to fix them",
    options: socketOption,
    about: [
      "It inspects the configuration, the machine, the running server if there is one, and the stores that the configuration",
      "names. It contacts nobody else. The exit code is 1 if something does not work, and 0 otherwise. A warning means that",
      "something will stop working, or is not safe. The checks are:",
      "",
      ...own.map(({ name, help }) => `- ${name}: ${help}`),
      `- ${commandFiles}: ${commandFilesHelp}`,
      "- the checks of modules: the files cli/doctor.ts in their folders",
    ].join("\n"),
    async run(context) {
      const installation = await installationOf(context);
      const modules = modulesOf({ ...context, configPath: hostOptions(context, context.args).configPath ?? undefined });
      const results = await runChecks([...own, ...(await checksOf(modules))], installation);
      const findings = results.flatMap((result) => result.findings);
      const isOk = findings.every(({ level }) => level !== "problem");
      const server = installation.running && { pid: installation.running.pid, socket: installation.socket };
      const sandbox = installation.layers.map(({ isRequired, ...layer }) => ({ ...layer, is_required: isRequired }));
      context.output.show({ ok: isOk, server, checks: results, sandbox }, () =>
        doctorText(results, installation, context.output),
      );
      return isOk ? 0 : 1;
    },
  };
}

const commandFiles = "commands of modules";
const commandFilesHelp = "Every command and check that a module contributes can be used";

async function checksOf(modules: ModuleCommands): Promise<Check[]> {
  const [checks] = await Promise.all([modules.checks(), modules.all()]);
  const findings = modules.faults.map(({ text, remedy }) => problem(text, remedy));
  return [{ name: commandFiles, help: commandFilesHelp, run: () => findings }, ...checks];
}

/** Runs the checks one after another; a check that throws becomes a finding. */
export async function runChecks(checks: readonly Check[], installation: Installation): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const { name, run } of checks) {
    const findings = await Promise.try(run, installation).catch((error: unknown) => [
      problem(`This could not be checked: ${reasonOf(error)}`, "see whether the user that runs the server can read it"),
    ]);
    results.push({ check: name, findings });
  }
  return results;
}

const machine: System = {
  uid: process.getuid?.(),
  node: process.version,
  now: Date.now,
  read(path) {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return undefined;
    }
  },
  space(path) {
    try {
      const { type, bavail, bsize, files, ffree } = statfsSync(path);
      return { type, free: bavail * bsize, files, freeFiles: ffree };
    } catch {
      return undefined;
    }
  },
};

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

async function installationOf(context: CommandContext): Promise<Installation> {
  const configPath = hostOptions(context, context.args).configPath ?? undefined;
  const search = { ...context, configPath };
  const { report, config } = await inspect(context);
  const read = () => loadConfig({ path: configPath, cwd: context.cwd, env: context.env });
  // A configuration with a wrong value still has a data folder.
  const named = config ?? (await read().catch(() => undefined));
  const data = String(attempt(() => named?.value("data_path")) ?? context.cwd);
  const found = { report, config, data, layers: sandboxLayers(), system: machine };
  // The check of the configuration reports its problems.
  const socket = await adminSocket(search, context.options.socket).catch(() => "");
  if (socket === "") return { ...found, socket, running: undefined, unreached: undefined };
  try {
    const running = await statusOf(socket);
    const layers = layersOf(running, found.layers);
    return { ...found, layers, data: running.data_path, socket, running, unreached: undefined };
  } catch (error) {
    const unreached = error instanceof NoServerError ? error.message : reasonOf(error);
    return { ...found, socket, running: undefined, unreached };
  }
}

/**
 * Returns the layers as the running server has found them. A unit of systemd can forbid what works
 * in the shell of the operator, or allow more. `own`: the layers that this process has found.
 */
export function layersOf({ modules }: Pick<ServerStatus, "modules">, own: readonly SandboxLayer[]): SandboxLayer[] {
  const states = modules.flatMap(({ sandbox = [] }) => sandbox);
  return own.map((layer) => {
    const found = states.filter(({ name }) => name === layer.name);
    // A setting of one module can switch off a layer that works.
    const state = found.find(({ is_active }) => is_active) ?? found[0];
    if (state === undefined) return layer;
    const { name, isRequired } = layer;
    const { is_active: works, text: detail, remedy } = state;
    return { name, works, detail, isRequired, ...(remedy !== undefined && { remedy }) };
  });
}

function doctorText(results: readonly CheckResult[], installation: Installation, output: Output): string {
  const { running, socket, layers } = installation;
  const { paint } = output;
  const width = Math.max(...results.map(({ check }) => check.length));
  const lines = results.flatMap(({ check, findings }) => {
    if (findings.length === 0) return [`${paint("green", "ok      ")}  ${check}`];
    return findings.flatMap(({ level, text, remedy }) => [
      `${paint(level === "problem" ? "red" : "yellow", level.padEnd(8))}  ${check.padEnd(width)}  ${text}`,
      `${" ".repeat(width + 12)}${paint("cyan", `→ ${remedy}`)}`,
    ]);
  });
  const all = results.flatMap(({ findings }) => findings);
  const problems = all.filter(({ level }) => level === "problem").length;
  const server =
    running === undefined ? "No server runs here" : `The server runs, process ${running.pid}, ${dirname(socket)}`;
  const verdict = `${counted(problems, "problem")}, ${counted(all.length - problems, "warning")}.`;
  return [
    ...lines,
    "",
    ...layerLines(layers, output),
    "",
    `${server}. ${all.length === 0 ? paint("green", "Nothing is wrong.") : verdict}`,
  ].join("\n");
}

/** Returns the layers of the sandbox, one line each, and how to get those that do not work. */
function layerLines(layers: readonly SandboxLayer[], { paint }: Output): string[] {
  const rows = layers.flatMap(({ name, works, detail, remedy }) => [
    [`  ${name}`, works ? paint("green", "works") : paint("yellow", "missing"), detail],
    ...(remedy === undefined ? [] : [["", "", paint("cyan", `→ ${remedy}`)]]),
  ]);
  return [paint("bold", "Layers of the sandbox for modules:"), ...columns(rows).split("\n")];
}
