/** From a path to the one that it leads to. */
import { type CidForm, cidWriterFor } from "../formats/cid/writer.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { type IpfsPath, pathText, type RecordCallOptions, recordOptions } from "./common.ts";

export interface ResolveOptions extends RecordCallOptions, CidForm {
  /** Go on until it is no name any more; true by default. */
  readonly recursive?: boolean | undefined;
}

export interface ResolveApi {
  /** The path of what a path or a name leads to, such as `/ipfs/CID`. @throws NodeError */
  resolve(path: IpfsPath, options?: ResolveOptions): Promise<string>;
}

export function resolveApi(node: LowLevelNode): ResolveApi {
  return {
    async resolve(path, options = {}) {
      const text = pathText(path);
      const looking = recordOptions(options);
      const named = /^\/(?:ipns|name)\/(.*)$/s.exec(text)?.[1];
      // One step leads to whatever the name stands for, be it a name or nothing.
      if (named !== undefined && options.recursive === false) {
        return (await node.names.find(named, { ...looking, depth: 1 })).path;
      }
      const write = cidWriterFor(text, options);
      const { namespace, cid, remainder } = await node.resolve(text, looking);
      return ["", namespace, write(cid), ...remainder].join("/");
    },
  };
}
