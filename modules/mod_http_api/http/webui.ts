/** `/webui`: a front end of the API, whose pages share the API's origin (option `api_webui`). */
import { statSync } from "node:fs";
import type { HttpFiles } from "modhost/http_files";
import type { HttpGateway } from "modhost/http_gateway";
import { parseCid } from "modhost/node";
import { encodePath } from "../../../core/http/index.ts";
import { invalidOption } from "../../../core/index.ts";
import type { Handler, Module, RouteTable } from "../../../core/types.ts";
import type { options } from "../options.ts";
import { plainError } from "./respond.ts";

/** The path that go-ipfs uses. */
const PATH = "/webui";

/** Modules that serve content add their functions (HttpGateway) as an item of this kind. */
const KIND = "content-gateway";

const NO_GATEWAY = "The front end that api_webui names is content: load the module http_gateway, which serves content.";

export interface WebUi {
  /** Whether a front end is served at `/webui`. */
  readonly isThere: boolean;
  /** The content path of the front end; undefined if it is a folder. */
  readonly content?: string;
}

/** Mounts the front end that the option names, if any. @throws {ModhostError} OPTION_INVALID */
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
    module.log.warn(
      "api_webui: %s is neither a folder nor a CID: /webui responds with 404 until the folder exists",
      folder,
    );
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
 * At the addresses of the node's config the front end is below `/ipfs`, and `/webui` redirects to
 * it, as in go-ipfs. At ports of the host, a gateway would redirect clients of `/ipfs` to a host
 * name of its own, and its pages would have another origin. There the front end is at `/webui`.
 */
function mountContent(module: Module, path: `/${string}`): WebUi {
  let serve: Handler | undefined;
  module.handle_items(
    KIND,
    // The operator chose this path, so strangers cannot use it to make the node fetch anything
    // else.
    ({ item }) => void (serve = (item as HttpGateway).serve_cid(path, { fetch: true }) as Handler),
    () => void (serve = undefined),
  );
  const route = routesOf((event, rest) => (serve === undefined ? plainError(404, NO_GATEWAY) : serve(event, rest)));
  const leading = routesOf(() => ({ status_code: 302, headers: { location: `${encodePath(path)}/` }, body: "" }));
  module.provides("http", { default_path: PATH, route, cors: { enabled: false } });
  module.add_item("rpc-page", { path: PATH, route: leading });
  module.add_item("rpc-page", { path, route });
  return {
    content: path,
    get isThere() {
      return serve !== undefined;
    },
  };
}

/**
 * Without the trailing slash, relative links would be wrong. The header keeps other pages from
 * framing the front end to steal clicks.
 */
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

/**
 * Returns undefined for a value that can only be a folder.
 *
 * @throws {ModhostError} OPTION_INVALID /
 */
function contentPathOf(value: string): `/${string}` | undefined {
  const [path, namespace, root = ""] = /^\/(ip[fn]s)\/([^/]+).*?(?=\/*$)/.exec(value) ?? [];
  try {
    if (namespace !== "ipns") parseCid(path === undefined ? value : root);
    return (path ?? `/ipfs/${value}`) as `/${string}`;
  } catch (cause) {
    if (path === undefined) return undefined;
    throw invalidOption("api_webui", value, `${JSON.stringify(root)} is not a CID: ${(cause as Error).message}`);
  }
}
