/** How the node identifies itself to peers. */
import { createRequire } from "node:module";

const { version } = createRequire(import.meta.url)("modhost/package.json") as { readonly version: string };

/** What this program calls itself, to peers and to servers that it asks. */
export const agentVersion = `modhost/${version}/`;

/**
 * Parts of printable ASCII without blanks, between single slashes: `NAME/VERSION`, and more parts
 * if wanted.
 */
const AGENT = /^[!-.0-~]+(\/[!-.0-~]+)+\/?$/;
const MAX_AGENT_LENGTH = 128;

/** Whether a node may call itself so: `kubo/0.43.0`. */
export const isAgentVersion = (text: string): boolean => text.length <= MAX_AGENT_LENGTH && AGENT.test(text);

/** What a node calls itself with `Version.AgentSuffix`, made such that peers take it. */
export const withSuffix = (agent: string, suffix: string | null | undefined): string =>
  suffix
    ? `${agent}${agent.endsWith("/") ? "" : "/"}${suffix.replace(/[^!-~]/gu, "_")}`.slice(0, MAX_AGENT_LENGTH)
    : agent;

/** Version of the protocols between peers. */
export const protocolVersion = "ipfs/0.1.0";
