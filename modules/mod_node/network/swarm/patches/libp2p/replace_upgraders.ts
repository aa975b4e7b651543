/**
 * Changes how new connections are secured and multiplexed. The library only reads encrypters and
 * multiplexers at its creation, but exposes the maps that it uses, in the order of preference.
 */
import type { ConnectionEncrypter, StreamMuxerFactory } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "libp2p",
  version: "3.3.11",
  without: "a change of Swarm.Transports.Security or Multiplexers takes effect at the next start",
};

interface Upgrader {
  getConnectionEncrypters(): Map<string, ConnectionEncrypter>;
  getStreamMuxers(): Map<string, StreamMuxerFactory>;
}

/** Returns false if that is not possible. */
export function replaceUpgraders(
  upgrader: object,
  encrypters: readonly ConnectionEncrypter[],
  muxers: readonly StreamMuxerFactory[],
  notices: PatchNotices,
): boolean {
  const { getConnectionEncrypters, getStreamMuxers } = upgrader as Partial<Upgrader>;
  const known = getConnectionEncrypters?.call(upgrader);
  const knownMuxers = getStreamMuxers?.call(upgrader);
  const isMap = (found: unknown) => (found instanceof Map ? found : undefined);
  const parts = {
    "upgrader.getConnectionEncrypters": isMap(known),
    "upgrader.getStreamMuxers": isMap(knownMuxers),
  };
  if (!notices.isApplicable(patch, parts)) return false;
  known?.clear();
  for (const encrypter of encrypters) known?.set(encrypter.protocol, encrypter);
  knownMuxers?.clear();
  for (const muxer of muxers) knownMuxers?.set(muxer.protocol, muxer);
  return true;
}
