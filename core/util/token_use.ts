/** How the tokens of the server and the requests that present them know each other. */
import type { PresentedToken } from "../types.ts";

/** A request that is under way with a token. */
export interface TokenUse {
  /** Bytes of its body so far. */
  readonly received: number;
  /** Bytes of its answer so far. */
  readonly sent: number;
  /** Ends it at once: its token is no longer good. */
  revoke(): void;
}

/** A token that counts what is done with it. */
export interface CountingToken extends PresentedToken {
  begin(use: TokenUse): void;
  end(use: TokenUse): void;
}

/** A request that keeps its token. */
export interface TokenBearer {
  readonly token: PresentedToken | undefined;
  bear(token: CountingToken): void;
}
