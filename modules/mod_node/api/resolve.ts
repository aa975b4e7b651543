/** Resolves paths. */
import { type CidForm, cidWriterFor } from "../formats/cid/writer.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { type IpfsPath, pathText, type RecordCallOptions, recordOptions } from "./common.ts";

export interface ResolveOptions extends RecordCallOptions, CidForm {
  /** Resolve repeatedly until the result is not a name; true by default. */
  readonly recursive?: boolean | undefined;
}

export interface ResolveApi {
  /** Resolves a path or a name to a path such as `/ipfs/CID`. @throws NodeError */
  resolve(path: IpfsPath, options?: ResolveOptions): Promise<string>;
}

export function resolveApi(node: LowLevelNode): ResolveApi {
  return {
    async resolve(path, options = {}) {
      const text = pathText(path);
      const looking = recordOptions(options);
      const named = /^\/(?:ipns|name)\/(.*)$/s.exec(text)?.[1];
      // A single step gives the value of the name, even if that is a name itself or does not exist.
      if (named !== undefined && options.recursive === false) {
        return (await node.names.find(named, { ...looking, depth: 1 })).path;
      }
      const write = cidWriterFor(text, options);
      const { namespace, cid, remainder } = await node.resolve(text, looking);
      return ["", namespace, write(cid), ...remainder].join("/");
    },
  };
}
