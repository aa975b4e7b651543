/**
 * The client interface that programs, commands and modules call. Its names, arguments, results and
 * errors are those of the client libraries of the RPC API (kubo-rpc-client, ipfs-http-client).
 * Where these omit something that the RPC API has, there is an additional option or method. Each
 * group of methods has its own file, which begins with the types.
 */
import type { LowLevelNode } from "../node/low_level_node.ts";
import { type AddApi, addApi } from "./add.ts";
import { type BitswapApi, bitswapApi } from "./bitswap.ts";
import { type BlockApi, blockApi } from "./block.ts";
import { type BootstrapApi, bootstrapApi } from "./bootstrap.ts";
import { type CatApi, catApi } from "./cat.ts";
import { type CidApi, cidApi } from "./cid.ts";
import { type ConfigApi, configApi } from "./config.ts";
import { type DagApi, dagApi } from "./dag.ts";
import { type DhtApi, dhtApi, type RoutingApi, routingApi } from "./dht.ts";
import { type DiagApi, diagApi } from "./diag.ts";
import { type DnsApi, dnsApi } from "./dns.ts";
import { type FileApi, fileApi } from "./file.ts";
import { type FilesApi, filesApi } from "./files.ts";
import { type FilestoreApi, filestoreApi } from "./filestore.ts";
import { type GetApi, getApi } from "./get.ts";
import { type IdApi, type IsOnlineApi, idApi, isOnlineApi } from "./id.ts";
import { type KeyApi, keyApi } from "./key.ts";
import { type LogApi, logApi } from "./log.ts";
import { type LsApi, lsApi } from "./ls.ts";
import { type MountApi, mountApi } from "./mount.ts";
import { type MultibaseApi, multibaseApi } from "./multibase.ts";
import { type NameApi, nameApi } from "./name.ts";
import { type ObjectApi, objectApi } from "./object.ts";
import { type P2pApi, p2pApi } from "./p2p.ts";
import { type PinApi, pinApi } from "./pin.ts";
import { type PingApi, pingApi } from "./ping.ts";
import { type ProvideApi, provideApi } from "./provide.ts";
import { type PubsubApi, pubsubApi } from "./pubsub.ts";
import { type RefsApi, refsApi } from "./refs.ts";
import { type RepoApi, repoApi } from "./repo.ts";
import { type ResolveApi, resolveApi } from "./resolve.ts";
import { type StatsApi, statsApi } from "./stats.ts";
import { type SwarmApi, swarmApi } from "./swarm.ts";
import { type TarApi, tarApi } from "./tar.ts";
import { type UrlstoreApi, urlstoreApi } from "./urlstore.ts";
import { type VersionApi, versionApi } from "./version.ts";

export type * from "./add.ts";
export type * from "./bitswap.ts";
export type * from "./block.ts";
export type * from "./bootstrap.ts";
export type { ByteStream, SizedByteStream } from "./byte_stream.ts";
export type { CarSources, FileCandidate, ImportCandidate, ImportCandidates, ImportContent } from "./candidates.ts";
export type * from "./cat.ts";
export type * from "./cid.ts";
export type { Address, ByteSource, CallOptions, IpfsPath, PeerName } from "./common.ts";
export type * from "./config.ts";
export type * from "./dag.ts";
export type * from "./dht.ts";
export type * from "./diag.ts";
export type { DnsApi, DnsOptions } from "./dns.ts";
export type * from "./file.ts";
export type * from "./files.ts";
export type * from "./filestore.ts";
export type * from "./get.ts";
export type * from "./id.ts";
export type * from "./key.ts";
export type * from "./log.ts";
export type * from "./ls.ts";
export type { ShownFacts } from "./mode_and_time.ts";
export type * from "./mount.ts";
export type * from "./multibase.ts";
export type * from "./name.ts";
export type * from "./object.ts";
export type * from "./p2p.ts";
export type * from "./pin.ts";
export type * from "./pin_remote.ts";
export type * from "./ping.ts";
export type * from "./provide.ts";
export type * from "./pubsub.ts";
export type * from "./refs.ts";
export type * from "./repo.ts";
export type * from "./resolve.ts";
export type * from "./stats.ts";
export type * from "./swarm.ts";
export type * from "./tar.ts";
export type * from "./urlstore.ts";
export type * from "./version.ts";

export interface NodeApi extends AddApi, CatApi, GetApi, LsApi, MountApi, RefsApi, ResolveApi, VersionApi {
  readonly bitswap: BitswapApi;
  readonly block: BlockApi;
  readonly bootstrap: BootstrapApi;
  readonly cid: CidApi;
  readonly config: ConfigApi;
  readonly dag: DagApi;
  readonly dht: DhtApi;
  readonly diag: DiagApi;
  readonly dns: DnsApi;
  readonly file: FileApi;
  readonly files: FilesApi;
  readonly filestore: FilestoreApi;
  readonly id: IdApi;
  readonly isOnline: IsOnlineApi;
  readonly key: KeyApi;
  readonly log: LogApi;
  readonly multibase: MultibaseApi;
  readonly name: NameApi;
  readonly object: ObjectApi;
  readonly p2p: P2pApi;
  readonly pin: PinApi;
  readonly ping: PingApi;
  readonly provide: ProvideApi;
  readonly pubsub: PubsubApi;
  readonly repo: RepoApi;
  readonly routing: RoutingApi;
  readonly stats: StatsApi & { readonly repo: RepoApi["stat"] };
  readonly swarm: SwarmApi;
  readonly tar: TarApi;
  readonly urlstore: UrlstoreApi;
}

export function nodeApi(node: LowLevelNode): NodeApi {
  return {
    ...addApi(node),
    ...catApi(node),
    ...getApi(node),
    ...lsApi(node),
    ...mountApi(node),
    ...refsApi(node),
    ...resolveApi(node),
    ...versionApi(node),
    bitswap: bitswapApi(node),
    block: blockApi(node),
    bootstrap: bootstrapApi(node),
    cid: cidApi(),
    config: configApi(node),
    dag: dagApi(node),
    dht: dhtApi(node),
    diag: diagApi(node),
    dns: dnsApi(node),
    file: fileApi(node),
    files: filesApi(node),
    filestore: filestoreApi(node),
    id: idApi(node),
    isOnline: isOnlineApi(node),
    key: keyApi(node),
    log: logApi(node),
    multibase: multibaseApi(),
    name: nameApi(node),
    object: objectApi(node),
    p2p: p2pApi(node),
    pin: pinApi(node),
    ping: pingApi(node),
    provide: provideApi(node),
    pubsub: pubsubApi(node),
    repo: repoApi(node),
    routing: routingApi(node),
    stats: { ...statsApi(node), repo: repoApi(node).stat },
    swarm: swarmApi(node),
    tar: tarApi(node),
    urlstore: urlstoreApi(node),
  };
}
