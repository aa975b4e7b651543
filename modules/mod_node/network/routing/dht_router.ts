/** Presents the DHTs as routers. */
import type { Dht } from "../kad/dht.ts";
import * as queries from "../kad/dual_dht.ts";
import type { Router } from "./router.ts";

/** A router that uses both DHTs, by the rules of go-ipfs. */
export const dhtRouter = (dhts: queries.DualDht): Router => ({
  findProviders: (cid, { count = Number.POSITIVE_INFINITY, signal }) => queries.findProviders(dhts, cid, count, signal),
  findPeer: (id, { signal }) => queries.findPeer(dhts, id, signal),
  search: (key, { count = 0, signal }) => queries.searchValue(dhts, key, signal, { count }),
  put: ({ key, value }, { signal }) => queries.putValue(dhts, key, value, signal),
  provide: (cid, { signal }) => queries.provide(dhts, cid, signal),
  canProvide: () => queries.activeDht(dhts).size > 0,
});

/** A router that uses one DHT only. */
export function oneDhtRouter(dht: Dht): Router {
  const { put, provide, canProvide } = dhtRouter({ wan: dht, lan: dht }) as Required<Router>;
  return {
    findProviders: (cid, { signal }) => dht.findProviders(cid, signal),
    findPeer: (id, { signal }) => dht.findPeer(id, signal),
    search: (key, { signal }) => dht.get(key, signal),
    put,
    provide,
    canProvide,
  };
}
