import type { AutoNATComponents } from "@libp2p/autonat";

/**
 * Each stream is led through a list of its own. The library adds the handler of every inbound stream to the list that
 * `use` was given: the list would grow with each stream, and all handlers in it run for each one that follows.
 */
export function copyMiddlewareLists(registrar: Pick<AutoNATComponents["registrar"], "getMiddleware">): void {
  const { getMiddleware } = registrar;
  registrar.getMiddleware = (protocol) => [...getMiddleware.call(registrar, protocol)];
}
