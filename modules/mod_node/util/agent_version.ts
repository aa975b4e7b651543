/** How the node calls itself among peers. */
import { createRequire } from "node:module";

const { version } = createRequire(import.meta.url)("modhost/package.json") as { readonly version: string };

export const agentVersion = `modhost/${version}/`;

/** Of the protocols among peers. */
export const protocolVersion = "ipfs/0.1.0";
