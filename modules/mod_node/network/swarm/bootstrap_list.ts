/** The configured peers that are dialled first. What changes here is used from the next start on. */

import type { ConfigFile } from "../../storage/repo/config.ts";
import { bootstrapPeers } from "../../storage/repo/defaults.ts";
import { NodeError } from "../../util/errors.ts";
import { byPeer, type PeerAddress, parseMultiaddr, splitPeer, withPeer } from "./multiaddr.ts";

type BootstrapConfig = Pick<ConfigFile, "value" | "update">;

const key = "Bootstrap";

const normal = (text: string): string => parseMultiaddr(text).toString();

/** In their normal form, those of one peer together, each once. */
function listed(texts: readonly string[] | null): readonly string[] {
  const peers = byPeer([...new Set((texts ?? []).map(normal))].map((text) => splitPeer(parseMultiaddr(text))));
  return peers.flatMap(({ id, addresses }) => addresses.map((address) => withPeer(address, id).toString()));
}

/** The list, as far as it can be read. @throws NodeError of an entry that is no address of a peer */
export const listBootstrap = (config: BootstrapConfig): readonly string[] => listed(config.value(key));

/** @throws NodeError of an entry that is no address of a peer */
export const bootstrapAddresses = (config: BootstrapConfig): readonly PeerAddress[] =>
  (config.value(key) ?? []).map((text) => splitPeer(parseMultiaddr(text)));

/**
 * Puts peers in front; those that are there already, in whatever form, are there once. Returns them as given.
 *
 * @throws NodeError before anything is stored
 */
export async function addBootstrap(config: BootstrapConfig, texts: readonly string[]): Promise<readonly string[]> {
  if (texts.length === 0) throw new NodeError("no bootstrap peers to add");
  for (const text of texts) requirePeer(text);
  const first = firsts(texts);
  await config.update(key, (before) => [...firsts([...first.values(), ...(before ?? [])]).values()]);
  return [...first.values()];
}

/** The first text of each address, by its normal form. */
function firsts(texts: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const text of texts) {
    const name = normal(text);
    if (!found.has(name)) found.set(name, text);
  }
  return found;
}

function requirePeer(text: string): void {
  const parts = parseMultiaddr(text).getComponents();
  if (parts.at(-1)?.name !== "p2p") throw new NodeError(`invalid bootstrap address: ${text}`);
  if (parts.length === 1) throw new NodeError(`bootstrap address without a transport: ${text}`);
}

export const addDefaultBootstrap = (config: BootstrapConfig): Promise<readonly string[]> =>
  addBootstrap(config, bootstrapPeers);

/** Takes addresses out, and all of a peer where only its id is given. Returns what went. @throws NodeError */
export async function removeBootstrap(config: BootstrapConfig, texts: readonly string[]): Promise<readonly string[]> {
  const peerOf = (text: string) => splitPeer(parseMultiaddr(text)).id;
  for (const text of texts) peerOf(text);
  const unwanted = new Set(texts.map(normal));
  const goes = (text: string) => unwanted.has(text) || unwanted.has(`/p2p/${peerOf(text)}`);
  let removed: readonly string[] = [];
  await config.update(key, (before) => {
    const all = listed(before);
    removed = all.filter(goes);
    return all.filter((text) => !goes(text));
  });
  return removed;
}

/** Empties the list. Returns what was in it. */
export async function clearBootstrap(config: BootstrapConfig): Promise<readonly string[]> {
  let removed: readonly string[] = [];
  await config.update(key, (before) => {
    removed = listed(before);
    return null;
  });
  return removed;
}
