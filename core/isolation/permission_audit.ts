/**
 * Reports what Node's permission model has refused to JavaScript, or with an audit would have
 * refused, in the module's own process. Node.js publishes this only there.
 */
import { subscribe } from "node:diagnostics_channel";
import { resolve } from "node:path";
import type { PermissionKind } from "../types.ts";

/** The kinds by the name that Node.js gives them. Network is left to the broker of the host. */
const kinds: Readonly<Record<string, PermissionKind>> = {
  FileSystemRead: "read",
  FileSystemWrite: "write",
  ChildProcess: "run",
  Addon: "addons",
};

/** Channels of Node.js, by the part of the system that is used. */
const channels = ["fs", "child", "addon"];

/** Maximum number of permissions that are reported. */
const MAX_REPORTED = 256;

/** Calls `report` once for each permission. */
export function reportPermissions(report: (kind: PermissionKind, item: string) => void): void {
  const reported = new Set<string>();
  const received = (message: unknown) => {
    const { permission = "", resource = "" } = message as { readonly permission?: string; readonly resource?: string };
    const kind = kinds[permission];
    if (kind === undefined || reported.size >= MAX_REPORTED) return;
    const isPath = kind === "read" || kind === "write" || resource.includes("/");
    const item = kind === "addons" ? "*" : isPath ? resolve(resource) : resource;
    const key = `${kind} ${item}`;
    if (reported.has(key)) return;
    reported.add(key);
    report(kind, item);
  };
  for (const name of channels) subscribe(`node:permission-model:${name}`, received);
}
