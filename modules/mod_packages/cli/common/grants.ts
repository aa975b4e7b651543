/** The permissions in the option `--grant`. */

import { UsageError } from "../../../../core/cli/index.ts";
import { permissionFault } from "../../../../core/index.ts";
import type { ModulePermissions } from "../../../../core/types.ts";

/**
 * Parses `none`, `declared`, JSON, or permissions such as
 * `connect:api.example.org:443,env:SHOP_KEY,call:node.cat`.
 * @throws {UsageError}
 */
export function grantFrom(text: string, declared: ModulePermissions): ModulePermissions {
  if (text === "none") return {};
  if (text === "declared") return declared;
  const grant = text.startsWith("{") ? fromJson(text) : fromList(text);
  const fault = permissionFault(grant);
  if (fault !== undefined) throw new UsageError(`--grant is wrong: ${fault}`);
  return grant as ModulePermissions;
}

/** Returns the value of `--grant` for exactly these permissions. */
export function grantOption(permissions: ModulePermissions): string {
  const { call = {}, addons, ...others } = permissions;
  const items = [
    ...Object.entries(others).flatMap(([kind, list]) => (list as readonly unknown[]).map((item) => `${kind}:${item}`)),
    ...Object.entries(call).flatMap(([module, names]) =>
      names === true ? [`call:${module}`] : names.map((name) => `call:${module}.${name}`),
    ),
    ...(addons === true ? ["addons"] : []),
  ];
  if (items.length === 0) return "none";
  return items.some((item) => /[,\s'"]/.test(item)) ? `'${JSON.stringify(permissions)}'` : items.join(",");
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--grant is not JSON: ${(error as Error).message}`);
  }
}

function fromList(text: string): unknown {
  const grant: Record<string, unknown> = {};
  for (const entry of text.split(",")) {
    if (entry === "addons") {
      grant.addons = true;
      continue;
    }
    const colon = entry.indexOf(":");
    if (colon < 1 || colon === entry.length - 1) {
      throw new UsageError(
        `--grant has ${entry}: write none, declared, or permissions such as connect:api.example.org:443,env:SHOP_KEY`,
      );
    }
    const kind = entry.slice(0, colon);
    const item = entry.slice(colon + 1);
    if (kind === "call") addCall(grant, item);
    else grant[kind] = [...((grant[kind] ?? []) as unknown[]), kind === "listen" ? Number(item) : item];
  }
  return grant;
}

function addCall(grant: Record<string, unknown>, item: string): void {
  const [module = "", ...rest] = item.split(".");
  const calls = (grant.call ??= {}) as Record<string, true | string[]>;
  if (rest.length === 0) calls[module] = true;
  else if (calls[module] !== true) calls[module] = [...(calls[module] ?? []), rest.join(".")];
}
