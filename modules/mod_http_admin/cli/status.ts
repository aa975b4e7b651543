import { type CommandContext, columns } from "../../../core/cli/index.ts";
import type { ServerStatus } from "../../../core/types.ts";
import { operationOf } from "../operations/index.ts";
import { commandOf } from "./commands/from_table.ts";

/** Requests beyond these are counted. */
const MAX_SHOWN_REQUESTS = 10;

export const command = commandOf(operationOf("status"), { show });

function show({ output }: CommandContext, status: ServerStatus): number {
  output.show(status, () => {
    const { modules, addresses, certificates, requests, warnings } = status;
    const failed = modules.filter((module) => module.status === "failed");
    const ports = addresses.map(({ service, address, port }) => {
      return `${service} on ${address.includes(":") ? `[${address}]` : address}:${port}`;
    });
    const more = requests.length - MAX_SHOWN_REQUESTS;
    const rows = [
      ["version", `modhost ${status.version}, process ${status.pid}`],
      ["state", `${status.phase} since ${status.started}`],
      ["config", status.config ?? "none"],
      ["data", status.data_path],
      ["ports", ports.join(", ") || "none"],
      ...(certificates.length === 0 ? [] : [["certificates", certificates.map(untilText).join(", ")]]),
      ["modules", `${modules.length - failed.length} loaded${failed.length === 0 ? "" : `, ${failed.length} failed`}`],
      ["connections", String(status.connections)],
      ["requests", String(requests.length)],
    ];
    return [
      columns(rows),
      ...requests.slice(0, MAX_SHOWN_REQUESTS).map((request) => `  ${request}`),
      ...(more > 0 ? [`  and ${more} more`] : []),
      ...warnings.map((warning) => `${output.paint("yellow", "warning")}  ${warning}`),
    ].join("\n");
  });
  return 0;
}

function untilText({ name, expires }: ServerStatus["certificates"][number]): string {
  return expires === undefined ? `${name} not issued yet` : `${name} until ${expires.slice(0, 10)}`;
}
