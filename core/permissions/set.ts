/** Splits a declaration or a grant into single permissions, and compares them. */
import type { ModulePermissions, PermissionKind } from "../types.ts";
import { printable } from "../util/text.ts";
import { connectItem, parseHostPort } from "./hosts.ts";
import { ANY, kindNames, permissionKinds } from "./kinds.ts";
import { absolutePath, isWithin, realPath } from "./paths.ts";

/** One permission: its kind, and one path, host, name, function or port as text. */
export interface Permission {
  readonly kind: PermissionKind;
  readonly item: string;
}

/** The folders of a module, which relative paths start from. */
export interface OwnFolders {
  /** The folder of its code. */
  readonly folder: string;
  /** Its own folder below `data_path`. */
  readonly dataFolder: string;
}

/** Returns the single permissions in the order of the kinds. */
export function itemsOf(permissions: ModulePermissions): Permission[] {
  return kindNames.flatMap((kind) => textsOf(kind, permissions).map((item) => ({ kind, item })));
}

function textsOf(kind: PermissionKind, permissions: ModulePermissions): readonly string[] {
  if (kind === "addons") return permissions.addons === true ? [ANY] : [];
  if (kind === "listen") return (permissions.listen ?? []).map(String);
  if (kind !== "call") return permissions[kind] ?? [];
  return Object.entries(permissions.call ?? {}).flatMap(([module, names]) =>
    names === true ? [`${module}.${ANY}`] : names.map((name) => `${module}.${name}`),
  );
}

/**
 * Returns the permission in words: "may connect to api.example.org:443". The module may have chosen
 * the item, so that it cannot be printed as it is.
 */
export const wordsOf = ({ kind, item }: Permission): string => printable(`may ${permissionKinds[kind].may(item)}`);

/** Returns permissions in words, one text for each. */
export const permissionWords = (permissions: ModulePermissions): string[] => itemsOf(permissions).map(wordsOf);

/**
 * Returns what grants permissions in the configuration, in a form that YAML and scripts take:
 * `modules: { shop: { grant: { env: ["SHOP_KEY"] } } }`.
 */
export function grantText(module: string, ...permissions: readonly Permission[]): string {
  const kinds = kindNames.flatMap((kind) => {
    const items = permissions.filter((each) => each.kind === kind).map(({ item }) => item);
    return items.length === 0 ? [] : [`${kind}: ${valueText(kind, items)}`];
  });
  return printable(`modules: { ${keyText(module)}: { grant: { ${kinds.join(", ")} } } }`);
}

function valueText(kind: PermissionKind, items: readonly string[]): string {
  if (kind === "addons") return "true";
  if (kind === "listen") return `[${items.join(", ")}]`;
  if (kind !== "call") return listText(items);
  const modules = Map.groupBy(items, (item) => item.slice(0, item.indexOf(".")));
  const entries = [...modules].map(([module, functions]) => {
    const names = functions.map((item) => item.slice(module.length + 1));
    return `${keyText(module)}: ${names.includes(ANY) ? "true" : listText(names)}`;
  });
  return `{ ${entries.join(", ")} }`;
}

const listText = (texts: readonly string[]): string => `[${texts.map((text) => JSON.stringify(text)).join(", ")}]`;

const keyText = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name));

/** Finds out which permissions others cover. */
export class PermissionSet {
  readonly items: readonly Permission[];
  readonly #folders: OwnFolders;

  constructor(permissions: ModulePermissions, folders: OwnFolders) {
    this.items = itemsOf(permissions);
    this.#folders = folders;
  }

  /** Returns the item that covers a permission; undefined if none does. */
  coverOf(wanted: Permission): Permission | undefined {
    return this.items.find((granted) => this.#covers(granted, wanted));
  }

  #covers(granted: Permission, wanted: Permission): boolean {
    const isReadOfWritable = granted.kind === "write" && wanted.kind === "read";
    if (granted.kind !== wanted.kind && !isReadOfWritable) return false;
    if (granted.kind === wanted.kind && granted.item === wanted.item) return true;
    switch (wanted.kind) {
      case "read":
      case "write":
        return isWithin(this.#real(wanted.item), this.#real(granted.item));
      case "run":
        return this.#real(wanted.item) === this.#real(granted.item);
      case "connect": {
        const parsed = parseHostPort(wanted.item);
        if (typeof parsed === "string" || parsed.port === "*") return false;
        return connectItem([granted.item], { host: parsed.host, port: parsed.port }) !== undefined;
      }
      case "call":
        return granted.item === `${wanted.item.split(".")[0]}.${ANY}`;
      default:
        return false;
    }
  }

  #real(item: string): string {
    const { folder, dataFolder } = this.#folders;
    return realPath(absolutePath(item, folder, dataFolder));
  }
}
