/** How the node identifies itself to peers. */
import { createRequire } from "node:module";

const { version } = createRequire(import.meta.url)("modhost/package.json") as { readonly version: string };

/** The name and version that this program sends to peers and to servers. */
export const agentVersion = `modhost/${version}/`;

/**
 * Segments of printable ASCII without blanks, separated by single slashes: `NAME/VERSION`,
 * optionally followed by further segments.
 */
const AGENT = /^[!-.0-~]+(\/[!-.0-~]+)+\/?$/;
const MAX_AGENT_LENGTH = 128;

/** Whether a text is valid as an agent version, such as `kubo/0.43.0`. */
export const isAgentVersion = (text: string): boolean => text.length <= MAX_AGENT_LENGTH && AGENT.test(text);

/** Appends `Version.AgentSuffix` to an agent version, in a form that peers accept. */
export const withSuffix = (agent: string, suffix: string | null | undefined): string =>
  suffix
    ? `${agent}${agent.endsWith("/") ? "" : "/"}${suffix.replace(/[^!-~]/gu, "_")}`.slice(0, MAX_AGENT_LENGTH)
    : agent;

/** Protocol version that the node announces to peers. */
export const protocolVersion = "ipfs/0.1.0";
