/** The list `Bootstrap` of the configuration. Who changes it has the swarm go by it. */

import { AUTO, type AutoValues, builtIn, expandedList } from "../../storage/repo/auto_values.ts";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { bootstrapPeers } from "../../storage/repo/defaults.ts";
import { NodeError } from "../../util/errors.ts";
import { byPeer, type PeerAddress, parseMultiaddr, splitPeer, withPeer } from "./multiaddr.ts";

type BootstrapConfig = Pick<ConfigFile, "value" | "update"> & { readonly auto?: AutoValues };

const KEY = "Bootstrap";

const expanded = ({ auto = builtIn }: BootstrapConfig, texts: readonly string[] | null): readonly string[] =>
  expandedList(texts ?? [], auto.Bootstrap.filter(isPeer));

/** What others write into the document of `AutoConf` is left out where it is no address of a peer. */
function isPeer(text: string): boolean {
  try {
    splitPeer(parseMultiaddr(text));
    return true;
  } catch {
    return false;
  }
}

const normalized = (text: string): string => parseMultiaddr(text).toString();

/** Normalized, without duplicates, grouped by peer. */
function grouped(config: BootstrapConfig, texts: readonly string[] | null): readonly string[] {
  const peers = byPeer(
    [...new Set(expanded(config, texts).map(normalized))].map((text) => splitPeer(parseMultiaddr(text))),
  );
  return peers.flatMap(({ id, addresses }) => addresses.map((address) => withPeer(address, id).toString()));
}

/** The list, normalized. @throws NodeError for an entry that is no address of a peer */
export const listBootstrap = (config: BootstrapConfig): readonly string[] => grouped(config, config.value(KEY));

/** @throws NodeError for an entry that is no address of a peer */
export const bootstrapAddresses = (config: BootstrapConfig): readonly PeerAddress[] =>
  expanded(config, config.value(KEY)).map((text) => splitPeer(parseMultiaddr(text)));

/**
 * Adds peers at the front; one that is in the list already, in whatever form, moves there. Returns them as given.
 *
 * @throws NodeError before anything is stored
 */
export async function addBootstrap(config: BootstrapConfig, texts: readonly string[]): Promise<readonly string[]> {
  if (texts.length === 0) throw new NodeError("no bootstrap peers to add");
  // It stays a word in the file.
  if (texts.includes(AUTO)) return addAuto(config, texts);
  for (const text of texts) requirePeer(text);
  const first = unique(texts);
  await config.update(KEY, (before) => [...unique([...first.values(), ...expanded(config, before)]).values()]);
  return [...first.values()];
}

async function addAuto(config: BootstrapConfig, texts: readonly string[]): Promise<readonly string[]> {
  if (config.value("AutoConf.Enabled") === false) {
    throw new NodeError(
      "cannot add default bootstrap peers: AutoConf is disabled (AutoConf.Enabled=false). Enable AutoConf by setting AutoConf.Enabled=true in your config, or add specific peer addresses instead",
    );
  }
  for (const text of texts) if (text !== AUTO) requirePeer(text);
  await config.update(KEY, (before) => [...new Set([...texts, ...(before ?? [])])]);
  return texts;
}

/** The list as it is written, with the word `auto` where it stands for others. */
export const writtenBootstrap = (config: BootstrapConfig): readonly string[] => config.value(KEY) ?? [];

/** The first text of each address, by its normalized form. */
function unique(texts: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const text of texts) {
    const name = normalized(text);
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

/** Removes addresses; an id alone removes all addresses of that peer. Returns what was removed. @throws NodeError */
export async function removeBootstrap(config: BootstrapConfig, texts: readonly string[]): Promise<readonly string[]> {
  const peerOf = (text: string) => splitPeer(parseMultiaddr(text)).id;
  for (const text of texts) peerOf(text);
  const unwanted = new Set(texts.map(normalized));
  const isRemoved = (text: string) => unwanted.has(text) || unwanted.has(`/p2p/${peerOf(text)}`);
  let removed: readonly string[] = [];
  await config.update(KEY, (before) => {
    const all = grouped(config, before);
    removed = all.filter(isRemoved);
    return all.filter((text) => !isRemoved(text));
  });
  return removed;
}

/** Empties the list, and returns it. */
export async function clearBootstrap(config: BootstrapConfig): Promise<readonly string[]> {
  let removed: readonly string[] = [];
  await config.update(KEY, (before) => {
    removed = grouped(config, before);
    return null;
  });
  return removed;
}
