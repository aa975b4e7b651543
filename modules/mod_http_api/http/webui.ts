/** `/webui`: a front end of the API, whose pages have the API's own origin (option `api_webui`). */
import { statSync } from "node:fs";
import { parseCid } from "modhost/node";
import { encodePath } from "../../../core/http/index.ts";
import { invalidOption } from "../../../core/index.ts";
import type { Handler, HttpFiles, HttpGateway, Module, RouteTable } from "../../../core/types.ts";
import type { options } from "../options.ts";
import { plain } from "./respond.ts";

/** Where go-ipfs has it. */
const PATH = "/webui";

/** A module that serves content adds its functions (HttpGateway) as an item of this kind. */
const KIND = "content-gateway";

const NO_GATEWAY = "The front end of api_webui is content: load the module http_gateway, which serves content.";

export interface WebUi {
  /** Something answers at `/webui`. */
  readonly isThere: boolean;
}

/** Where the option names nothing, nothing is mounted. @throws {ModhostError} OPTION_INVALID */
export function mountWebUi(module: Module<typeof options>): WebUi {
  const value = module.get_option_string("api_webui") ?? "";
  if (value === "") return { isThere: false };
  const content = contentPathOf(value);
  const owner = module as Module;
  if (content !== undefined) return mountContent(owner, content);
  return mountFolder(owner, owner.get_option_path("api_webui") as string);
}

function mountFolder(module: Module, folder: string): WebUi {
  const isThere = () => statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isThere())
    module.log.warn("api_webui: %s is neither a folder nor a CID: /webui is 404 until it is there", folder);
  const route = routesOf(module.depends<HttpFiles>("http_files").serve(folder));
  module.provides("http", { default_path: PATH, route, cors: { enabled: false } });
  module.add_item("rpc-page", { path: PATH, route });
  return {
    get isThere() {
      return isThere();
    },
  };
}

/**
 * At the addresses of the node's config it is below `/ipfs`, to which `/webui` leads, as in go-ipfs. At ports of the host a
 * gateway would send clients of `/ipfs` on to a host of its own, where pages have another origin: so it is at `/webui` there.
 */
function mountContent(module: Module, path: `/${string}`): WebUi {
  let serve: Handler | undefined;
  module.handle_items(
    KIND,
    // The operator has named it: strangers cannot make the node fetch anything else by it.
    ({ item }) => void (serve = (item as HttpGateway).serve_cid(path, { fetch: true }) as Handler),
    () => void (serve = undefined),
  );
  const route = routesOf((event, rest) => (serve === undefined ? plain(404, NO_GATEWAY) : serve(event, rest)));
  const leading = routesOf(() => ({ status_code: 302, headers: { location: `${encodePath(path)}/` }, body: "" }));
  module.provides("http", { default_path: PATH, route, cors: { enabled: false } });
  module.add_item("rpc-page", { path: PATH, route: leading });
  module.add_item("rpc-page", { path, route });
  return {
    get isThere() {
      return serve !== undefined;
    },
  };
}

/** Without the slash its relative links would lead elsewhere. No other page may show it in a frame and have it clicked. */
function routesOf(serve: Handler): RouteTable {
  const handler: Handler = (event, rest = "") => {
    const { path, url } = event.request;
    event.response.headers.x_frame_options = "SAMEORIGIN";
    if (rest !== "" || path.endsWith("/")) return serve(event, rest);
    const location = `${path}/${url.query === undefined ? "" : `?${url.query}`}`;
    return { status_code: 301, headers: { location }, body: "" };
  };
  return { GET: handler, HEAD: handler, "GET /*": handler, "HEAD /*": handler };
}

/** Undefined for what can only be a folder. @throws {ModhostError} OPTION_INVALID */
function contentPathOf(value: string): `/${string}` | undefined {
  const [path, namespace, root = ""] = /^\/(ip[fn]s)\/([^/]+).*?(?=\/*$)/.exec(value) ?? [];
  try {
    if (namespace !== "ipns") parseCid(path === undefined ? value : root);
    return (path ?? `/ipfs/${value}`) as `/${string}`;
  } catch (cause) {
    if (path === undefined) return undefined;
    throw invalidOption("api_webui", value, `${JSON.stringify(root)} is no CID: ${(cause as Error).message}`);
  }
}
