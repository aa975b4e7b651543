/**
 * Isolates content from apps of the same origin. Content by path has the origin of the server, so
 * its pages could call apps that trust their own origin, such as the RPC. While such apps are
 * loaded, all content by path is sandboxed, which gives it an opaque origin. Browsers at a loopback
 * address are redirected to the host of the root, if this machine serves such hosts.
 */
import type { HttpRequest, Module, ResponseFields } from "../../core/types.ts";
import { Refusal } from "./errors/refusal.ts";

/**
 * A module adds an item of this kind if its app trusts pages of its own origin, or callers on this
 * machine, without a secret.
 */
const KIND = "trusts-own-origin";

/** Returns a function that tells whether an app with an item of this kind is currently loaded. */
export function trustingApps(module: Module): () => boolean {
  let apps = 0;
  module.handle_items(
    KIND,
    () => void (apps += 1),
    () => void (apps -= 1),
  );
  return () => apps > 0;
}

/**
 * Allows everything that does not need the origin of the server. It must never include
 * `allow-same-origin`.
 */
const SANDBOX =
  "sandbox allow-downloads allow-forms allow-modals allow-orientation-lock allow-pointer-lock allow-popups " +
  "allow-popups-to-escape-sandbox allow-presentation allow-scripts allow-top-navigation-by-user-activation";

/**
 * Returns the response with a sandbox, so that its content has an opaque origin. Its own policies
 * stay in force, too.
 */
export function sandboxed(response: ResponseFields): ResponseFields {
  const { content_security_policy: own } = response.headers ?? {};
  const policy = own === undefined ? SANDBOX : `${[own].flat().join(", ")}, ${SANDBOX}`;
  return { ...response, headers: { ...response.headers, content_security_policy: policy } };
}

/**
 * Refuses the script of a service worker, which could serve other pages of the origin. @throws
 * {Refusal} 400
 */
export function refuseWorker(request: Pick<HttpRequest, "header">): void {
  if (request.header("service-worker") !== "script") return;
  throw new Refusal(
    400,
    "A service worker may not come from content that shares its origin with other apps of the server: open the content at its own host, such as CID.ipfs.localhost",
  );
}

const documents: ReadonlySet<string | undefined> = new Set(["document", "iframe", "frame", "embed", "object"]);

/** Whether a browser requests a document, for a tab or for a frame. */
export const isDocumentRequest = (request: Pick<HttpRequest, "header">): boolean =>
  request.header("sec-fetch-mode") === "navigate" || documents.has(request.header("sec-fetch-dest"));

/**
 * Whether a host name is a loopback address that `localhost`, with its hosts of roots, can replace.
 */
export const isLoopbackAddress = (name: string): boolean => name === "127.0.0.1" || name === "[::1]";
