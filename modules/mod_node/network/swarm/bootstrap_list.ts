/**
 * Reads and changes the list `Bootstrap` of the configuration. Callers that change it must also
 * update the swarm.
 */

import { AUTO, type AutoValues, builtIn, expandedList } from "../../storage/repo/auto_values.ts";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { bootstrapPeers } from "../../storage/repo/defaults.ts";
import { failure } from "../../util/errors.ts";
import { byPeer, type PeerAddress, parseMultiaddr, splitPeer, withPeer } from "./multiaddr.ts";

type BootstrapConfig = Pick<ConfigFile, "value" | "update"> & { readonly auto?: AutoValues };

const KEY = "Bootstrap";

/** Expands the word `auto`, which stands for no peers if AutoConf is disabled. */
const expanded = (config: BootstrapConfig, texts: readonly string[] | null): readonly string[] =>
  expandedList(texts ?? [], mayExpand(config) ? (config.auto ?? builtIn).Bootstrap.filter(isPeer) : []);

/**
 * Whether a text is the address of a peer; entries of the `AutoConf` document that are not are
 * ignored.
 */
function isPeer(text: string): boolean {
  try {
    splitPeer(parseMultiaddr(text));
    return true;
  } catch {
    return false;
  }
}

const normalized = (text: string): string => parseMultiaddr(text).toString();

/** Returns the addresses normalized, without duplicates, and grouped by peer. */
function grouped(config: BootstrapConfig, texts: readonly string[] | null): readonly string[] {
  const peers = byPeer(
    [...new Set(expanded(config, texts).map(normalized))].map((text) => splitPeer(parseMultiaddr(text))),
  );
  return peers.flatMap(({ id, addresses }) => addresses.map((address) => withPeer(address, id).toString()));
}

/** Returns the normalized list. @throws NodeError for an entry that is not the address of a peer */
export const listBootstrap = (config: BootstrapConfig): readonly string[] => grouped(config, config.value(KEY));

/** @throws NodeError for an entry that is not the address of a peer */
export const bootstrapAddresses = (config: BootstrapConfig): readonly PeerAddress[] =>
  expanded(config, config.value(KEY)).map((text) => splitPeer(parseMultiaddr(text)));

/**
 * Adds peers at the front; a peer that is in the list already, in whatever form, moves there. The
 * word `auto` is stored as it is. Returns the addresses as given.
 *
 * @throws NodeError before anything is stored
 */
export async function addBootstrap(config: BootstrapConfig, texts: readonly string[]): Promise<readonly string[]> {
  if (texts.length === 0) throw failure("ARGUMENT_INVALID", { reason: "no bootstrap peers to add" });
  if (texts.includes(AUTO) && !mayExpand(config)) {
    throw failure("CONFIG_CHANGE_REFUSED", {
      reason:
        "cannot add default bootstrap peers: AutoConf is disabled (AutoConf.Enabled=false). Enable AutoConf by setting AutoConf.Enabled=true in your config, or add specific peer addresses instead",
    });
  }
  for (const text of texts) if (text !== AUTO) requirePeer(text);
  const first = unique(texts);
  await config.update(KEY, (before) => [...unique([...first.values(), ...(before ?? [])]).values()]);
  return [...first.values()];
}

const mayExpand = (config: BootstrapConfig): boolean => config.value("AutoConf.Enabled") !== false;

/**
 * Returns the list as the configuration has it, in which the word `auto` stands for other peers.
 */
export const writtenBootstrap = (config: BootstrapConfig): readonly string[] => config.value(KEY) ?? [];

/** Returns the first text of each address, by its normalized form. */
function unique(texts: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const text of texts) {
    const name = text === AUTO ? AUTO : normalized(text);
    if (!found.has(name)) found.set(name, text);
  }
  return found;
}

function requirePeer(text: string): void {
  const parts = parseMultiaddr(text).getComponents();
  if (parts.at(-1)?.name !== "p2p") throw failure("ADDRESS_INVALID", { reason: `invalid bootstrap address: ${text}` });
  if (parts.length === 1)
    throw failure("ADDRESS_INVALID", { reason: `bootstrap address without a transport: ${text}` });
}

export const addDefaultBootstrap = (config: BootstrapConfig): Promise<readonly string[]> =>
  addBootstrap(config, bootstrapPeers);

/**
 * Removes addresses; an id alone removes all addresses of that peer. Returns the removed addresses.
 * @throws NodeError
 */
export async function removeBootstrap(config: BootstrapConfig, texts: readonly string[]): Promise<readonly string[]> {
  if (writtenBootstrap(config).includes(AUTO) && mayExpand(config)) {
    throw failure("CONFIG_CHANGE_REFUSED", {
      reason:
        "cannot remove individual bootstrap peers when using 'auto' placeholder: the 'auto' value is managed by AutoConf. Either disable AutoConf by setting AutoConf.Enabled=false and replace 'auto' with specific peer addresses, or use 'ipfs bootstrap rm --all' to remove all peers",
    });
  }
  const peerOf = (text: string) => splitPeer(parseMultiaddr(text)).id;
  for (const text of texts) peerOf(text);
  const unwanted = new Set(texts.map(normalized));
  const isRemoved = (text: string) => unwanted.has(text) || unwanted.has(`/p2p/${peerOf(text)}`);
  let removed: readonly string[] = [];
  await config.update(KEY, (before) => {
    const isWord = (text: string) => text === AUTO;
    const all = grouped(config, before?.filter((text) => !isWord(text)) ?? null);
    removed = all.filter(isRemoved);
    return [...(before?.filter(isWord) ?? []), ...all.filter((text) => !isRemoved(text))];
  });
  return removed;
}

/** Empties the list and returns it; as the configuration has it if the word `auto` is in it. */
export async function clearBootstrap(config: BootstrapConfig): Promise<readonly string[]> {
  let removed: readonly string[] = [];
  await config.update(KEY, (before) => {
    removed = before?.includes(AUTO) ? before : grouped(config, before);
    return null;
  });
  return removed;
}
