/** The operation that describes any block, by its CID or a path. */
import { contentPath } from "../content_path.ts";
import { pageFields, pageOf } from "../paging.ts";
import { MAX_PATH_LENGTH, nodeOperation } from "./operation.ts";

const USUAL_PAGE = 100;
const USUAL_SECONDS = 30;

export const exploreOperations = [
  nodeOperation({
    name: "node_dag",
    method: "GET",
    path: "/node/dag",
    scope: "read",
    help: "A block: codec, hash, size, links in pages, and its content",
    input: {
      path: {
        type: "string",
        required: true,
        describe: "A CID, or a path such as /ipfs/CID/a or /ipns/NAME",
        maxLength: MAX_PATH_LENGTH,
      },
      ...pageFields,
      timeout: { type: "number", describe: `Seconds to look for it among peers; default ${USUAL_SECONDS}` },
      local: { type: "boolean", describe: "Do not contact peers; default: false" },
    },
    response: "DagNode",
    run: async ({ node, signal, input: { path, timeout = USUAL_SECONDS, local = false, ...page } }) => {
      const { explore } = await import("../explore.ts");
      return explore(node, contentPath(path), { ...pageOf(page, USUAL_PAGE), timeout, isLocal: local, signal });
    },
  }),
];
