/** How the node identifies itself to peers. */
import { createRequire } from "node:module";

const { version } = createRequire(import.meta.url)("modhost/package.json") as { readonly version: string };

export const agentVersion = `modhost/${version}/`;

/** Version of the protocols between peers. */
export const protocolVersion = "ipfs/0.1.0";
