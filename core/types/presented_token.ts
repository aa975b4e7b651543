/** The token of a request, and what it opens. */

/** `read` looks; `write` changes something, or hands out a secret. */
export type TokenEffect = "read" | "write";

/** What a request needs a scope for. */
export type TokenNeed =
  /** An app that asks for tokens; the name is the app's, or the one of `auth: { scope }`. */
  | { readonly kind: "app"; readonly name: string }
  | { readonly kind: "admin"; readonly access: "read" | "admin" }
  | { readonly kind: "metrics" }
  /** The pins of some user of the pinning service: the scope says whose. */
  | { readonly kind: "pinning" }
  /** A command of the RPC, such as `pin/add`. */
  | { readonly kind: "rpc"; readonly command: string; readonly effect: TokenEffect }
  /** Any command of the RPC at all. */
  | { readonly kind: "rpc-any" }
  /** A path of the mutable namespace (MFS), and what is done there. */
  | { readonly kind: "mfs"; readonly path: string; readonly use: MfsUse };

/**
 * What a command does with a path of the mutable namespace. `look` and `make` take the directory of a scope itself, too;
 * `change` only what is below it; `into` a place in it (below, or the directory with a slash at its end); `copy` reads
 * what is to be copied, which may be `/ipfs/...`, too.
 */
export type MfsUse = "look" | "make" | "change" | "into" | "copy";

/** The token of a request that was let in: `event.request.token`. */
export interface PresentedToken {
  readonly id: string;
  /** As `modhost token list` shows it; never the secret. */
  readonly name: string;
  readonly scopes: readonly string[];
  allows(need: TokenNeed): boolean;
}
