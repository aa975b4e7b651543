/**
 * Gives each stream its own middleware list. libp2p appends the protocol handler of every inbound
 * stream to the very list that was passed to `use`. The list grows with each stream, and every
 * later stream runs all handlers in it.
 */
import type { AutoNATComponents } from "@libp2p/autonat";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "libp2p",
  version: "3.3.11",
  without: "a stream with middleware is handled again with every later stream",
};

type Registrar = Pick<AutoNATComponents["registrar"], "getMiddleware">;

export function copyMiddlewareLists(registrar: Registrar, notices: PatchNotices): void {
  const { getMiddleware }: Partial<Registrar> = registrar;
  if (!notices.isApplicable(patch, { "registrar.getMiddleware": getMiddleware })) return;
  registrar.getMiddleware = (protocol) => [...(getMiddleware?.call(registrar, protocol) ?? [])];
}
