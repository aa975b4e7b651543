/**
 * Checked by the compiler only: the route tables that it accepts, and those that it refuses (each
 * `@ts-expect-error`).
 */
import type {
  ExactHandler,
  Handler,
  HttpProvider,
  Module,
  RouteKey,
  RouteTable,
  WebSocketHandler,
  WildcardHandler,
} from "modhost/types";

/** Compiles only where both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : never;
const same = <A, B>(_same: Same<A, B>): void => undefined;

export function takes(module: Module): void {
  // Event and wildcard argument are inferred for every form of key. Results may be values or
  // promises.
  module.provides("http", {
    route: {
      GET: "text",
      HEAD: 204,
      "GET /": (event) => event.request.path,
      "GET /a": (_event, path) => same<typeof path, undefined>(true),
      "GET /a/*": (event, path) => {
        same<typeof path, string>(true);
        return event.request.id + path.length;
      },
      "GET /*": (_event, path) => path.length,
      "GET /*/b": (_event, path) => same<typeof path, undefined>(true),
      async "POST /m"({ request }) {
        return request.body;
      },
      "PUT /m": async () => {},
      "M-SEARCH /f": () => ({ status_code: 201, headers: { x_count: 1 } }),
    },
    default_path: "/",
  });

  // Under `WS` the event has `accept`.
  module.provides("http", {
    route: {
      WS: (event) => void event.accept().send("hello"),
      "WS /rooms/*": async (event, path) => event.accept().send(`${path.length} ${event.request.path}`),
      "WS /none": 404,
    },
  });
  const socket: WebSocketHandler = (event) => void event.accept();
  module.provides("http", { route: { "WS /x": socket } });

  // A handler with both arguments fits every key, and one that needs the wildcard argument fits
  // only wildcard keys.
  const shared: Handler = (event, path) => path ?? event.request.path;
  const wildcard: WildcardHandler = (_event, path) => path.length;
  const exact: ExactHandler = (event) => event.request.path;
  module.provides("http", { route: { "GET /x": shared, "GET /x/*": shared, "PUT /x/*": wildcard, "PUT /x": exact } });

  // Tables that are built while the module runs.
  const table: RouteTable = { "GET /": exact, "GET /list/*": shared };
  for (const name of ["a", "b"]) table[`GET /${name}`] = shared;
  module.provides("http", { route: table });
  const loose: Record<string, Handler> = {};
  for (const key of ["get /a", "GET /b/*"]) loose[key] = shared;
  module.provides("http", { route: loose });
  const provider: HttpProvider = { route: table, streaming_uploads: true };
  module.provides("http", provider);
  const key: RouteKey = "DELETE /x/*";
  module.provides("http", { route: { [key]: shared } });

  // Other kinds accept their own items.
  module.provides("net", { name: "gopher", default_ports: [70], onconnect: (socket) => socket.end() });
  module.provides("shelf", { books: 3 });
  const kind: string = "shelf";
  module.provides(kind, { books: 3 });
}

export function refuses(module: Module): void {
  // @ts-expect-error: no blank
  module.provides("http", { route: { GETX: () => "x" } });
  // @ts-expect-error: lower case
  module.provides("http", { route: { "get /x": () => "x" } });
  // @ts-expect-error: no slash
  module.provides("http", { route: { "GET x": () => "x" } });
  // @ts-expect-error: no method
  module.provides("http", { route: { "": () => "x" } });
  // @ts-expect-error: no method
  module.provides("http", { route: { "/x": () => "x" } });
  // @ts-expect-error: no method of HTTP servers here
  module.provides("http", { route: { "BREW /x": () => "x" } });
  // @ts-expect-error: a value under a wrong key
  module.provides("http", { route: { GETX: "x" } });
  module.provides("http", {
    route: {
      // @ts-expect-error: a wrong key says so itself, and the handlers beside it keep their types
      "GET/x": () => "x",
      "GET /x/*": (_event, path) => path.length,
    },
  });

  // @ts-expect-error: there is no wildcard argument
  module.provides("http", { route: { "GET /x": (_event, path) => path.length } });
  // @ts-expect-error: nor under a method alone
  module.provides("http", { route: { GET: (_event, path) => path.length } });
  // @ts-expect-error: a star elsewhere is no wildcard
  module.provides("http", { route: { "GET /x*": (_event, path) => path.length } });
  const wildcard: WildcardHandler = (_event, path) => path.length;
  // @ts-expect-error: this handler needs one
  module.provides("http", { route: { "GET /x": wildcard } });
  // @ts-expect-error: and this one does without
  module.provides("http", { route: { "GET /x/*": ((_event, path) => path) satisfies ExactHandler } });

  // @ts-expect-error: no websocket
  module.provides("http", { route: { "GET /x": (event) => event.accept().protocol } });
  const socket: WebSocketHandler = (event) => void event.accept();
  // @ts-expect-error: nor here
  module.provides("http", { route: { "GET /x": socket } });

  // @ts-expect-error: no answer
  module.provides("http", { route: { "GET /x": () => new Date() } });
  // @ts-expect-error: no answer, later
  module.provides("http", { route: { "GET /x": async () => Symbol.iterator } });
  // @ts-expect-error: an app has routes
  module.provides("http", { default_path: "/" });
  // @ts-expect-error: a port service hears of connections
  module.provides("net", { name: "gopher" });
  // @ts-expect-error: an item is an object
  module.provides("shelf", 3);

  const table: RouteTable = {};
  // @ts-expect-error: no route key
  table["GET x"] = "x";
}
