import { relative } from "node:path";
import { format } from "node:util";
import type { Config } from "../config/index.ts";
import type { Host } from "../host.ts";
import type { CertificatesOptions, TlsLog } from "../tls/index.ts";
import type { ConfigPlan, LogLevel, ModuleState } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
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
import { portWarnings, valueWarnings } from "./check_values.ts";
import type { Command, CommandContext } from "./command.ts";
import { filesArgument, hostOptions, httpOf, type Logged, labelOf, withHost } from "./hosted.ts";
import { columns, type Output } from "./output.ts";

export interface Report {
  readonly ok: boolean;
  readonly config: string | undefined;
  readonly modules: readonly { name: string; host: string; file: string | undefined; status: string }[];
  /** What keeps the server, or one of its modules, from starting. */
  readonly problems: readonly string[];
  /** What is suspicious, but stops nothing. */
  readonly warnings: readonly string[];
  /** What the server that runs on this configuration would change; none where none runs. */
  readonly plan?: ConfigPlan;
}

/** With --exit-code: the configuration is valid, and the server that runs on it has another one in force. */
const CHANGES_WAIT = 4;

export const check: Command = {
  name: "check",
  arguments: filesArgument,
  help: "Check the configuration, its paths and ports, and list the modules that would be loaded",
  options: {
    "exit-code": { type: "boolean", help: "Exit with 4 when the configuration is valid and not in force" },
    ...socketOption,
  },
  about: [
    "When a server runs on the config file, it is asked what modhost reload would change, and that is shown, too. The exit",
    "code is 0 when the configuration is valid, and 1 when it is not.",
  ].join("\n"),
  async run(context) {
    const { output, cwd, options } = context;
    const { report: found, config } = await inspect(context);
    const asked = { ...found, ...(await runningPlan(context, found)) };
    const ports = config === undefined ? [] : await portWarnings(config, asked.plan);
    const report = { ...asked, warnings: [...asked.warnings, ...ports] };
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
  isEmpty ? "The server that runs has it in force." : "The server that runs would change by modhost reload:";

/** What the server that runs on the same file makes of it. */
async function runningPlan(context: CommandContext, { ok, config }: Report): Promise<Partial<Report>> {
  const { modules, configPath } = hostOptions(context, context.args);
  if (!ok || modules !== undefined || config === undefined) return {};
  const { socket: named } = context.options;
  try {
    const socket = await adminSocket({ ...context, configPath }, named);
    await statusOf(socket);
    const { value } = await send<ConfigPlan>(socket, "GET", "/plan");
    return value.config === config ? { plan: value } : {};
  } catch (error) {
    if (error instanceof RefusedError) return { ok: false, problems: [`the server that runs: ${error.message}`] };
    if (error instanceof StuckServerError) context.stderr.write(`modhost: ${error.message}\n`);
    // Nobody runs where there is not even a folder for it.
    if (named === undefined || error instanceof NoServerError) return {};
    throw error;
  }
}

function verdict({ problems, warnings, modules }: Report, output: Output): string {
  const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const notes = warnings.length === 0 ? "" : `, with ${counted(warnings.length, "warning")}`;
  if (problems.length === 0) return output.paint("green", `The configuration is valid${notes}.`);
  const outcome =
    modules.length === 0 ? "the server would not start" : "the server would not start, or not with all modules";
  return output.paint("red", `The configuration is not valid: ${counted(problems.length, "problem")}; ${outcome}.`);
}

/** The report on a configuration, without its ports, and the configuration itself where it can be read. */
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
    .concat(certificates.problems, said(logged, "error", states));
  const unknown = host.config.unknownNames().map(({ path, nearest }) => {
    return `${path} is no known option${nearest === undefined ? "" : `: did you mean ${nearest}?`}`;
  });
  const modules = states.map(({ name, host, file, status }) => ({ name, host, file, status }));
  const values = await valueWarnings(host.config, httpOf(host));
  const warnings = [...certificates.warnings, ...unknown, ...values, ...said(logged, "warn", states)];
  return { ok: problems.length === 0, config: host.config.file, modules, problems, warnings };
}

/** What the modules that are loaded said while they were. */
function said(logged: readonly Logged[], level: LogLevel, states: readonly ModuleState[]): string[] {
  const loaded = new Set(states.filter(({ status }) => status === "loaded").map(({ name }) => name));
  return logged
    .filter((line) => line.level === level && line.module !== undefined && loaded.has(line.module))
    .map(({ module, msg }) => `${module}: ${msg}`);
}

/** Certificates are read as at a start, but none is made. */
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

/** The host does not even start: no module was loaded. */
function failed(error: unknown): Report {
  const details = (ModhostError.is(error) ? error.details : {}) as { list?: unknown; file?: string; path?: string };
  const { list, file = details.path } = details;
  const [, ...lines] = reasonOf(error).split("\n");
  const problems = Array.isArray(list) ? lines.map((line) => line.trim()) : [reasonOf(error)];
  return { ok: false, config: file, modules: [], problems, warnings: [] };
}
