/** Describes a plan in words. */
import type { ConfigPlan, InstalledChange, ModuleStep, OptionChange, PermissionChange, PortStep } from "../types.ts";
import { hostPort } from "../util/brackets.ts";

/** Returns one line for each difference. */
export function planLines({
  options,
  permissions,
  installed,
  hosts,
  modules,
  ports,
  certificates,
}: ConfigPlan): string[] {
  return [
    ...installed.map(installedLine),
    ...options.map(optionLine),
    ...permissions.flatMap(permissionLines),
    ...hosts.added.map((host) => `host ${host} is added`),
    ...hosts.removed.map((host) => `host ${host} is removed`),
    ...ports.map(portLine),
    ...certificates.map((name) => `another certificate for ${name}`),
    ...modules.map(moduleLine),
  ];
}

function installedLine({ module, from, to }: InstalledChange): string {
  if (from === undefined) return `${module} ${to} is installed`;
  return to === undefined ? `${module} ${from} is removed` : `${module} ${from} is replaced by ${to}`;
}

function optionLine({ name, host, from, to, applies, readers }: OptionChange): string {
  const path = host === "*" ? name : `hosts.${host}.${name}`;
  const when = applies === "start" ? " (at the next start)" : "";
  const who = readers.length === 0 ? "" : `, read by ${readers.join(", ")}`;
  return `${path}: ${from ?? "not set"} -> ${to ?? "not set"}${when}${who}`;
}

function permissionLines({ module, added, removed }: PermissionChange): string[] {
  return [
    ...added.map((text) => `${module} ${text} from now on`),
    ...removed.map((text) => `${module} ${text.replace(/^may /, "may no longer ")}`),
  ];
}

function portLine({ action, service, address, port }: PortStep): string {
  return `${action} ${service} on ${hostPort(address, port === 0 ? "any" : port)}`;
}

function moduleLine({ action, module, host, because }: ModuleStep): string {
  return `${action} ${module}${host === "*" ? "" : ` on ${host}`} (${because.join(", ")})`;
}
