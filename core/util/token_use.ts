/** The interfaces between the tokens of the server and the requests that present them. */
import type { PresentedToken } from "../types.ts";

/** An open request with a token. */
export interface TokenUse {
  /** Bytes of its body so far. */
  readonly received: number;
  /** Bytes of its response so far. */
  readonly sent: number;
  /** Ends the request at once, because its token is no longer valid. */
  revoke(): void;
}

/** A token that counts its use. */
export interface CountingToken extends PresentedToken {
  begin(use: TokenUse): void;
  end(use: TokenUse): void;
  /** Called whenever bytes are transferred; only for a token with a byte quota. */
  readonly moved?: (() => void) | undefined;
}

/** A request that stores its token. */
export interface TokenBearer {
  readonly token: PresentedToken | undefined;
  bear(token: CountingToken): void;
}
