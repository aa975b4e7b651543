/** Decides what one module may do, and counts it. */
import type { ModulePermissions } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { printable } from "../util/text.ts";
import { connectItem, type Destination } from "./hosts.ts";
import { permissionKinds } from "./kinds.ts";
import type { PermissionLedger } from "./ledger.ts";
import { grantText, type OwnFolders, type Permission, PermissionSet, wordsOf } from "./set.ts";

export interface AuthorityDeps {
  readonly module: string;
  readonly folders: OwnFolders;
  /** Undefined: the module may do everything, and its uses are only counted. */
  readonly granted: ModulePermissions | undefined;
  /** Whether everything passes, and what would have been refused is listed. */
  readonly isAudited: boolean;
  readonly ledger: PermissionLedger;
  /** Called once for each permission that is refused, or with audit would have been. */
  warn(text: string): void;
}

export class Authority {
  readonly isAudited: boolean;
  readonly #deps: AuthorityDeps;
  readonly #granted: PermissionSet;

  constructor(deps: AuthorityDeps) {
    this.#deps = deps;
    this.isAudited = deps.isAudited;
    this.#granted = new PermissionSet(deps.granted ?? {}, deps.folders);
  }

  /** Whether a permission is granted; counts nothing. */
  allows(permission: Permission): boolean {
    return this.#deps.granted === undefined || this.#granted.coverOf(permission) !== undefined;
  }

  /**
   * Counts a use of a permission.
   * @throws {ModhostError} PERMISSION_DENIED, unless it is granted or the module is audited
   */
  use(permission: Permission): void {
    this.#decide(permission, this.allows(permission));
  }

  /**
   * Counts a connection to a host.
   * @throws {ModhostError} PERMISSION_DENIED, also for a name that was resolved to a private
   * address which is not granted itself
   */
  connect(destination: Destination): void {
    const { host, port, address } = destination;
    const { granted } = this.#deps;
    const shown = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
    if (granted === undefined || connectItem(granted.connect ?? [], destination) !== undefined) {
      this.#decide({ kind: "connect", item: `${shown}:${port}` }, true);
      return;
    }
    const isNamed = connectItem(granted.connect ?? [], { host, port }) !== undefined;
    const at = address?.includes(":") ? `[${address}]` : address;
    this.#decide({ kind: "connect", item: `${isNamed && at !== undefined ? at : shown}:${port}` }, false);
  }

  /** The checks that the broker of the network makes before each connection. */
  readonly network = {
    /** Counts a connection; returns whether it may be made. */
    allows: (host: string, port: number): boolean => {
      try {
        this.connect({ host, port });
        return true;
      } catch {
        return false;
      }
    },
    refusal: (host: string, port: number): Error =>
      denied(this.#deps.module, { kind: "connect", item: `${host.includes(":") ? `[${host}]` : host}:${port}` }),
  };

  /** Counts a permission that the host handed over or left out before the code could use it. */
  handedOver(permission: Permission, isGranted: boolean): void {
    const { ledger, module } = this.#deps;
    if (ledger.count(module, permission, isGranted)) this.#warn(permission);
  }

  #decide(permission: Permission, isAllowed: boolean): void {
    const { ledger, module, isAudited } = this.#deps;
    if (ledger.count(module, permission, isAllowed)) this.#warn(permission);
    if (!isAllowed && !isAudited) throw denied(module, permission);
  }

  #warn(permission: Permission): void {
    const { isAudited, module, warn } = this.#deps;
    const what = isAudited ? "Without audit it would have been refused" : "It was refused";
    warn(`${what}: ${wordsOf(permission)}; ${grantText(module, permission)} grants it`);
  }
}

/** Returns the error for a use of a permission that is not granted. */
export function denied(module: string, permission: Permission): ModhostError {
  const grant = grantText(module, permission);
  const act = printable(permissionKinds[permission.kind].may(permission.item));
  return new ModhostError("PERMISSION_DENIED", { name: module, act, grant, ...permission });
}
