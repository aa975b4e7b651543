/**
 * Checked by the compiler only: the event that handlers of routes with the method `WS` get, and
 * that others do not get.
 */
import type { HttpEvent, Module, WebSocketConnection, WebSocketEvent, WebSocketHandler } from "modhost/types";

/** Compiles only where both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : never;
const same = <A, B>(_same: Same<A, B>): void => undefined;

export function takes(module: Module): void {
  const shared: WebSocketHandler = (event, path) => void event.accept().send(`${path}`);
  module.provides("http", {
    route: {
      WS: async (event) => {
        same<typeof event, WebSocketEvent>(true);
        const socket = event.accept({ protocol: event.protocols[0] ?? "" });
        same<typeof socket, WebSocketConnection>(true);
        for await (const message of socket) same<typeof message, string | Buffer>(true);
        return 204;
      },
      "WS /rooms/*": (event, path) => {
        same<typeof path, string>(true);
        return event.protocols.length === 0 ? 400 : undefined;
      },
      "WS /exact": (_event, path) => same<typeof path, undefined>(true),
      "WS /shared": shared,
      "WS /shared/*": shared,
      "WS /gone": 410,
      // A handler for requests of every kind.
      "WS /any": (event: HttpEvent) => (event.request.secure ? undefined : 403),
    },
    websocket: { origins: "*", protocols: ["a"], max_message_bytes: 1, compression: false },
  });
}

export function refuses(module: Module): void {
  module.provides("http", {
    route: {
      // @ts-expect-error: an ordinary request cannot be accepted
      "GET /x": (event) => void event.accept(),
      // @ts-expect-error: nor is its event one of a websocket
      "GET /y": (event: WebSocketEvent) => void event.accept(),
      // @ts-expect-error: a message is text or bytes
      "WS /z": (event) => event.accept().send({ text: "x" }),
      // @ts-expect-error: a path begins with a slash
      "WS z": () => 404,
    },
  });
}
