import { relative } from "node:path";
import { format } from "node:util";
import type { Config } from "../config/index.ts";
import { httpOf } from "../host/http_module.ts";
import type { Host } from "../host.ts";
import type { CertificatesOptions, TlsLog } from "../tls/index.ts";
import type { ConfigPlan, LogLevel, ModuleState, ServerStatus } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { counted } from "../util/text.ts";
import { planText } from "./admin/change.ts";
import {
  adminSocket,
  NoServerError,
  RefusedError,
  StuckServerError,
  send,
  socketOption,
  statusOf,
} from "./admin/client.ts";
import { permissionWarnings } from "./check_permissions.ts";
import { fileProblems, portFaults, valueWarnings } from "./check_values.ts";
import type { Command, CommandContext } from "./command.ts";
import { filesArgument, hostOptions, type Logged, labelOf, withHost } from "./hosted.ts";
import { columns, type Output } from "./output.ts";

export interface Report {
  readonly ok: boolean;
  readonly config: string | undefined;
  readonly modules: readonly { name: string; host: string; file: string | undefined; status: string }[];
  /** Problems that prevent the start of the server, or of one of its modules. */
  readonly problems: readonly string[];
  /** Suspicious settings that prevent nothing. */
  readonly warnings: readonly string[];
  /** The plan of the server that runs on this configuration; undefined if none runs. */
  readonly plan?: ConfigPlan;
}

/**
 * The exit code with --exit-code if the configuration is valid, but the running server uses an
 * older one.
 */
const CHANGES_WAIT = 4;

export const check: Command = {
  name: "check",
  arguments: filesArgument,
  help: "Check the configuration, its paths and ports, and list the modules that would be loaded",
  options: {
    "exit-code": {
      type: "boolean",
      help: "Exit with 4 if the configuration is valid, but the running server uses an older one",
    },
    ...socketOption,
  },
  about: [
    "If a server runs on the config file, the command also shows what modhost reload would change there. The exit code is 0",
    "if the configuration is valid, and 1 if it is not.",
  ].join("\n"),
  async run(context) {
    const { output, cwd, options } = context;
    const { report: found, config } = await inspect(context);
    const { running, ...planned } = await runningPlan(context, found);
    const checked = { ...found, ...planned };
    const ports =
      config === undefined ? { problems: [], warnings: [] } : await portFaults(config, checked.plan, running);
    const report = {
      ...checked,
      ok: checked.ok && ports.problems.length === 0,
      problems: [...checked.problems, ...ports.problems],
      warnings: [...checked.warnings, ...ports.warnings],
    };
    output.show(report, () => {
      const line = (style: "red" | "yellow", label: string) => (text: string) =>
        `${output.paint(style, label)}  ${text}`;
      const modules = report.modules.map((module) => {
        const file = module.file === undefined ? "" : relative(cwd, module.file);
        return [labelOf(module), module.status, file.startsWith("../..") ? (module.file ?? "") : file];
      });
      return [
        ...(report.config === undefined && report.modules.length === 0
          ? []
          : [`config   ${report.config ?? "none found: the embedded default"}`]),
        ...(modules.length === 0 ? [] : ["", columns(modules), ""]),
        ...report.warnings.map(line("yellow", "warning")),
        ...report.problems.map(line("red", "problem")),
        verdict(report, output),
        ...(report.plan === undefined ? [] : ["", planVerdict(report.plan), ...planText(report.plan)]),
      ].join("\n");
    });
    if (!report.ok) return 1;
    return options["exit-code"] === true && report.plan?.isEmpty === false ? CHANGES_WAIT : 0;
  },
};

const planVerdict = ({ isEmpty }: ConfigPlan) =>
  isEmpty ? "The running server uses this configuration." : "modhost reload would change the running server:";

/** Returns the status of the server that runs on the same file, and its plan for that file. */
async function runningPlan(
  context: CommandContext,
  { ok, config }: Report,
): Promise<Partial<Report> & { readonly running?: ServerStatus }> {
  const { modules, configPath } = hostOptions(context, context.args);
  if (modules !== undefined || config === undefined) return {};
  const { socket: named } = context.options;
  let running: ServerStatus | undefined;
  try {
    const socket = await adminSocket({ ...context, configPath }, named);
    running = await statusOf(socket);
    if (running.config !== config) return {};
    if (!ok) return { running };
    const { value } = await send<ConfigPlan>(socket, "GET", "/plan");
    return { running, plan: value };
  } catch (error) {
    if (error instanceof RefusedError) {
      return { ok: false, problems: [`the running server: ${error.message}`], ...(running && { running }) };
    }
    // The file may not exist or may be unreadable.
    if (!ok) return {};
    if (error instanceof StuckServerError) context.stderr.write(`modhost: ${error.message}\n`);
    // If the data folder does not exist, no server runs.
    if (named === undefined || error instanceof NoServerError) return {};
    throw error;
  }
}

function verdict({ problems, warnings, modules }: Report, output: Output): string {
  const notes = warnings.length === 0 ? "" : `, with ${counted(warnings.length, "warning")}`;
  if (problems.length === 0) return output.paint("green", `The configuration is valid${notes}.`);
  const outcome =
    modules.length === 0 ? "the server would not start" : "the server would not start, or not with all modules";
  return output.paint("red", `The configuration is not valid: ${counted(problems.length, "problem")}; ${outcome}.`);
}

/**
 * Returns the report on a configuration without its ports, and the configuration itself if it can
 * be read.
 */
export async function inspect(context: CommandContext): Promise<{ readonly report: Report; readonly config?: Config }> {
  let config: Config | undefined;
  const report = await withHost(hostOptions(context, context.args), (host, logged) => {
    config = host.config;
    return reportOf(host, logged);
  }).catch(failed);
  return config === undefined ? { report } : { report, config };
}

async function reportOf(host: Host, logged: readonly Logged[]): Promise<Report> {
  const states = host.modules();
  const certificates = await certificateReport(host.config);
  const problems = states
    .filter((state) => state.status === "failed")
    .map((state) => `${labelOf(state)}: ${state.note ?? "failed"}`)
    .concat(certificates.problems, await fileProblems(host.config), said(logged, "error", states));
  const unknown = host.config.unknownNames().map(({ path, nearest }) => {
    return `${path} is no known option${nearest === undefined ? "" : `: did you mean ${nearest}?`}`;
  });
  const modules = states.map(({ name, host, file, status }) => ({ name, host, file, status }));
  const values = await valueWarnings(host.config, httpOf(host));
  const empty = host.config.isEmpty ? ["The config file is empty: all options have their defaults"] : [];
  const permissions = permissionWarnings(host.config, states);
  const warnings = [
    ...empty,
    ...certificates.warnings,
    ...unknown,
    ...values,
    ...permissions,
    ...said(logged, "warn", states),
  ];
  return { ok: problems.length === 0, config: host.config.file, modules, problems, warnings };
}

/** Returns the messages that loaded modules have logged. */
function said(logged: readonly Logged[], level: LogLevel, states: readonly ModuleState[]): string[] {
  const loaded = new Set(states.filter(({ status }) => status === "loaded").map(({ name }) => name));
  return logged
    .filter((line) => line.level === level && line.module !== undefined && loaded.has(line.module))
    .map(({ module, msg }) => `${module}: ${msg}`);
}

/** Checks the certificates as at a start, but creates none. */
async function certificateReport(config: Config): Promise<Pick<Report, "problems" | "warnings">> {
  const warnings: string[] = [];
  const log: TlsLog = { info: () => {}, warn: (text, ...values) => warnings.push(format(text, ...values)) };
  const configured = config.value("certificates") as CertificatesOptions["certificates"];
  const { Certificates } = await import("../tls/index.ts");
  const certificates = new Certificates({ directory: "", certificates: configured, hosts: [], log });
  const problems = await certificates.verify().then(
    () => [],
    (error: unknown) => [reasonOf(error)],
  );
  return { problems, warnings };
}

/** Returns the report for a host that fails to start: no module was loaded. */
function failed(error: unknown): Report {
  const details = (ModhostError.is(error) ? error.details : {}) as { list?: unknown; file?: string; path?: string };
  const { list, file = details.path } = details;
  const [, ...lines] = reasonOf(error).split("\n");
  const problems = Array.isArray(list) ? lines.map((line) => line.trim()) : [reasonOf(error)];
  return { ok: false, config: file, modules: [], problems, warnings: [] };
}
