/** Who may call. */
import type { HttpRequest } from "../../core/types.ts";
import type { Scope } from "./operations/operation.ts";

/** A caller that is let in. */
export interface Visitor {
  /** For the record of changes. */
  readonly by: string;
  readonly scopes: ReadonlySet<Scope>;
}

/** @throws {AdminError} unauthorized, forbidden */
export type Authorize = (request: HttpRequest) => Visitor | Promise<Visitor>;

/** Through the socket comes only who may open its file: the user of this process, and root. */
export const throughSocket: Authorize = () => ({
  by: `socket uid ${process.getuid?.() ?? "unknown"}`,
  scopes: new Set<Scope>(["read", "admin"]),
});
