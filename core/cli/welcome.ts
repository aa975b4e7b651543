/**
 * Prints what `modhost run` serves: addresses, failed modules with reasons, and what to try next.
 */
import { httpOf } from "../host/http_module.ts";
import type { Host } from "../host.ts";
import type { ModuleState } from "../types.ts";
import { programName } from "../util/program_name.ts";
import { printable } from "../util/text.ts";
import { type AppAddresses, appAddresses, portText } from "./addresses.ts";
import { labelOf } from "./hosted.ts";
import { columns, type Output } from "./output.ts";

/** Prints what is served at which address. */
export function announce(host: Host, output: Output): void {
  const ports = host.listening();
  const first = host.startPage();
  // A module that has items for the start page is listed with these, and not with its routes.
  const served = (httpOf(host)?.routes() ?? []).filter((route) => !first.some(({ module }) => module === route.module));
  const shown = first.filter(({ urls }) => urls.length > 0).map(({ help: _, ...entry }) => entry);
  const apps = [...shown, ...appAddresses(served, ports)];
  const failed = host.modules().filter((state) => state.status === "failed");
  const data = String(host.config.value("data_path"));
  const config = host.config.file;
  const notes = failed.map(({ name, host, note }) => ({ name, host, note }));
  output.show({ event: "started", apps, ports, data, config, failed: notes }, () =>
    welcome({ apps, failed, data, config, ports: ports.map(portText) }, output),
  );
}

/** The facts that are printed. */
export interface Started {
  readonly apps: readonly AppAddresses[];
  readonly failed: readonly ModuleState[];
  readonly data: string;
  readonly config: string | undefined;
  readonly ports: readonly string[];
}

/**
 * Returns the text for people. No line is longer than the terminal, except for a single address or
 * reason.
 */
export function welcome(started: Started, output: Pick<Output, "paint" | "width">): string {
  const { apps, failed, data, config, ports } = started;
  return [
    output.paint("bold", apps.length === 0 ? "modhost runs, and serves no app" : "modhost serves"),
    "",
    ...appLines(apps, output),
    "",
    columns(
      [
        ["ports", ports.join(", ") || "none"],
        ["data", data],
        ["config", config ?? "none: defaults and environment variables apply"],
      ],
      "  ",
    ),
    ...failedLines(failed, output),
    "",
    ...tips(started).map(([what, how]) => `${output.paint("dim", `${what}:`)} ${how}`),
    "Stop with Ctrl+C.",
  ].join("\n");
}

/**
 * Returns all addresses of an app on one line, or each on its own line if the terminal is too
 * narrow.
 */
function appLines(apps: readonly AppAddresses[], { paint, width = Number.POSITIVE_INFINITY }: Shown): string[] {
  const rows = apps.map(({ name, urls }) => [name, ...urls]);
  const lines = columns(rows, "  ").split("\n");
  const isWide = lines.every((line) => line.length <= width);
  const shown = isWide ? rows : apps.flatMap(({ name, urls }) => urls.map((url, at) => [at === 0 ? name : "", url]));
  if (shown.length === 0) return [];
  return columns(
    shown.map(([name = "", ...urls]) => [printable(name), ...urls.map((url) => paint("cyan", url))]),
    "  ",
  ).split("\n");
}

type Shown = Pick<Output, "paint" | "width">;

function failedLines(failed: readonly ModuleState[], { paint }: Shown): string[] {
  if (failed.length === 0) return [];
  return ["", ...failed.map((state) => paint("red", `  failed  ${labelOf(state)}: ${state.note ?? ""}`))];
}

/** Returns the tips that match the facts. */
function tips({ apps, failed, data, config }: Started): string[][] {
  const [first] = failed;
  const program = programName();
  return [
    ...(first === undefined ? [] : [["When its file is fixed", `${program} reload ${first.name}`]]),
    ...(apps.length > 0 ? [] : [["A first module", `${program} new hello, and ${program} run --watch ./mod_hello`]]),
    ...(config === undefined && !apps.some(isSite)
      ? [["Pages and modules go into", `${data}/www, ${data}/modules`]]
      : []),
    ["Status, from another terminal", `${program} status --watch`],
  ];
}

const isSite = ({ module }: AppAddresses) => module.startsWith("site_");
