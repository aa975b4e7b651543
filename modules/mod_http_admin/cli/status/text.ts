/** Formats the state of a server for people. */
import { columns, counted, type Output } from "../../../../core/cli/index.ts";
import { cutTo, hostPort, type Style } from "../../../../core/http/index.ts";
import { printable, size_text } from "../../../../core/net/http.ts";
import type { ModuleState, ServerStatus } from "../../../../core/types.ts";
import { dashboardUrls } from "../../dashboard/urls.ts";
import type { Figures } from "../../types.ts";

/** Number of requests that are listed. The rest is only counted. */
const MAX_SHOWN_REQUESTS = 10;
/** A certificate that expires in fewer days is shown in colour. */
const SOON_DAYS = 14;
const DAY_MS = 24 * 60 * 60 * 1000;

type Shown = Pick<Output, "paint" | "width">;

/** Returns the lines, none wider than the terminal. */
export function statusLines(status: ServerStatus, output: Shown, metrics?: Partial<Figures>): string[] {
  const { paint, width } = output;
  const title = (text: string) => paint("bold", text);
  const lines = [
    ...columns(summary(status, metrics)).split("\n"),
    "",
    ...moduleLines(status.modules, output),
    ...sandboxLines(status.modules, output),
    ...certificateLines(status.certificates, output),
    ...requestLines(status.requests, title),
    ...(status.warnings.length === 0 ? [] : [""]),
    ...status.warnings.map((warning) => `${paint("yellow", "warning")}  ${printable(warning)}`),
  ];
  return width === undefined ? lines : lines.map((line) => cutTo(line, width));
}

function summary(status: ServerStatus, metrics: Partial<Figures> | undefined): string[][] {
  const { modules, addresses } = status;
  const ports = addresses.map(({ service, address, port }) => `${service} on ${hostPort(address, port)}`);
  return [
    ["version", `modhost ${status.version}, process ${status.pid}`],
    ["state", `${status.phase} since ${timeText(status.started)} (${agoText(status.started)})`],
    ["config", status.config ?? "none"],
    ["data", status.data_path],
    ["ports", ports.join(", ") || "none"],
    ["dashboard", dashboardUrls(addresses).join(", ") || "none: set the options admin_port or admin_https_port"],
    ["modules", countedStates(modules)],
    ["connections", String(status.connections)],
    ...(status.processes === undefined
      ? []
      : [["other processes", status.processes.map(({ number, pid }) => `${number} (pid ${pid})`).join(", ")]]),
    ["requests", `${status.requests.length} in progress${rateText(metrics)}`],
    ...(metrics?.rss === undefined ? [] : [["load", loadText(metrics)]]),
  ];
}

/** Returns a text such as `9 loaded, 1 failed`. */
function countedStates(modules: readonly ModuleState[]): string {
  const counts = Map.groupBy(modules, ({ status }) => status);
  return [...counts].map(([state, those]) => `${those.length} ${state}`).join(", ") || "none";
}

/** Formats the request rates of the last second, if the server measures them. */
function rateText({ active, requests, errors, sent }: Partial<Figures> = {}): string {
  if (active === undefined || requests === undefined) return "";
  const failed = errors === undefined || errors === 0 ? "" : `, ${Math.round(errors)} failed`;
  return `, ${Math.round(requests)}/s${failed}${sent === undefined ? "" : `, ${size_text(sent)}/s sent`}`;
}

function loadText({ cpu = 0, event_loop = 0, rss = 0, heap = 0 }: Partial<Figures>): string {
  const share = (part: number) => `${Math.round(part * 100)} %`;
  return `${share(cpu)} of a core, event loop ${share(event_loop)} busy, memory ${size_text(rss)} (heap ${size_text(heap)})`;
}

const styles: Readonly<Record<ModuleState["status"], Style>> = {
  loaded: "green",
  loading: "cyan",
  unloading: "cyan",
  quarantined: "yellow",
  failed: "red",
};

function moduleLines(modules: readonly ModuleState[], { paint }: Shown): string[] {
  const hosts = modules.some(({ host }) => host !== "*");
  const areRestricted = modules.some(({ run }) => run !== "trusted");
  const rows = modules.map(({ name, host, status, note = "", run, is_audited, has_spare }) => {
    const audited = is_audited === true ? paint("yellow", `${run}, audited`) : run;
    const where = `${audited}${spareText(has_spare)}`;
    return [
      `  ${printable(name)}`,
      ...(hosts ? [host] : []),
      paint(styles[status], status),
      ...(areRestricted ? [where] : []),
      printable(note),
    ];
  });
  const head = ["  MODULE", ...(hosts ? ["HOST"] : []), "STATE", ...(areRestricted ? ["RUNS"] : []), "NOTE"].map(
    (cell) => paint("dim", cell),
  );
  return columns([head, ...rows]).split("\n");
}

const spareText = (hasSpare: boolean | undefined): string =>
  hasSpare === undefined ? "" : hasSpare ? ", spare ready" : ", no spare yet";

/** Returns the layers of each sandbox, one line each, and how to get those that are missing. */
function sandboxLines(modules: readonly ModuleState[], { paint }: Shown): string[] {
  const rows = modules.flatMap(({ name, host, sandbox = [] }) =>
    sandbox.flatMap((layer, at) => {
      const title = host === "*" ? name : `${name} on ${host}`;
      return [
        [
          at === 0 ? `  ${printable(title)}` : "",
          layer.name,
          layer.is_active ? paint("green", "on") : paint("yellow", "off"),
          printable(layer.text),
        ],
        ...(layer.remedy === undefined ? [] : [["", "", "", paint("cyan", `→ ${printable(layer.remedy)}`)]]),
      ];
    }),
  );
  if (rows.length === 0) return [];
  const head = ["  SANDBOX", "LAYER", "", ""].map((cell) => paint("dim", cell));
  return ["", ...columns([head, ...rows]).split("\n")];
}

function certificateLines(certificates: ServerStatus["certificates"], { paint }: Shown): string[] {
  if (certificates.length === 0) return [];
  const rows = certificates.map(({ name, source, expires }) => {
    if (expires === undefined) return [`  ${name}`, source, "", paint("yellow", "not issued yet")];
    const days = Math.floor((Date.parse(expires) - Date.now()) / DAY_MS);
    const left = days < 0 ? "expired" : `${counted(days, "day")} left`;
    const style = days < 0 ? "red" : "yellow";
    return [`  ${name}`, source, expires.slice(0, 10), days < SOON_DAYS ? paint(style, left) : left];
  });
  const head = ["  CERTIFICATE", "SOURCE", "UNTIL", ""].map((cell) => paint("dim", cell));
  return ["", ...columns([head, ...rows]).split("\n")];
}

function requestLines(requests: readonly string[], title: (text: string) => string): string[] {
  if (requests.length === 0) return [];
  const more = requests.length - MAX_SHOWN_REQUESTS;
  return [
    "",
    title("Requests in progress, the oldest first:"),
    ...requests.slice(0, MAX_SHOWN_REQUESTS).map((request) => `  ${printable(request)}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

/** Formats a time by the clock of this machine, to the second. */
export function timeText(iso: string): string {
  const time = new Date(iso);
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19).replace("T", " ");
}

/** Formats an age: `12 s`, `3 min`, `5 h 2 min`, `12 days 3 h`. */
export function agoText(iso: string, now = Date.now()): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(iso)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days ${hours % 24} h`;
}
