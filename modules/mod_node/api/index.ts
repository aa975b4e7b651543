/**
 * The client interface: what programs, commands and modules call. Its names, arguments, results and failures are those of the
 * client libraries of the RPC API (kubo-rpc-client, ipfs-http-client); where these leave something out that the RPC API has,
 * there is an option or a method more. One file a group; each says its types first.
 */
import type { LowLevelNode } from "../types.ts";
import { type BlockApi, blockApi } from "./block.ts";
import { type FilesApi, filesApi } from "./files.ts";

export type * from "./block.ts";
export type { ByteSource, CallOptions, IpfsPath } from "./common.ts";
export type * from "./files.ts";

export interface NodeApi {
  readonly block: BlockApi;
  readonly files: FilesApi;
}

export function nodeApi(node: LowLevelNode): NodeApi {
  return {
    block: blockApi(node),
    files: filesApi(node),
  };
}
