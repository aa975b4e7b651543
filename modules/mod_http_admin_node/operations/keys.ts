/** Operations on keys, and on the names that they publish. */
import { HttpError } from "../../../core/index.ts";
import type { ResponseFields } from "../../../core/types.ts";
import { contentPath } from "../content_path.ts";
import { attachment } from "../disposition.ts";
import { within } from "../failures.ts";
import { BYTES } from "../media.ts";
import type { NamedValue, NodeKey } from "../types.ts";
import { type Deps, listOf, nodeOperation } from "./operation.ts";

/** Name of the node's own key. */
const SELF = "self";
/** Seconds for reading what this node itself has published. */
const OWN_SECONDS = 2;
const RESOLVE_SECONDS = 30;
/** Publishing a name to the network takes long. */
const PUBLISH_SECONDS = 300;

const name = { type: "string", required: true, describe: "Name of the key" } as const;

export const keyOperations = [
  nodeOperation({
    name: "node_keys",
    method: "GET",
    path: "/node/keys",
    scope: "read",
    help: "Keys of the node, and the paths that were published with them",
    response: listOf("NodeKey"),
    run: async ({ node, signal }) => {
      const keys = await node.key.list();
      return Promise.all(keys.map((key) => shown(node, key, signal)));
    },
  }),
  nodeOperation({
    name: "node_key_new",
    method: "POST",
    path: "/node/keys",
    scope: "admin",
    help: "Create a key",
    input: {
      name,
      type: { type: "string", values: ["ed25519", "rsa"], describe: "ed25519, which is the default, or rsa" },
      size: { type: "number", describe: "Bits of an RSA key; default 2048" },
    },
    response: "NodeKey",
    records: (input) => `create the key ${input.name}`,
    run: async ({ node, input }) => plain(await node.key.gen(input.name, { type: input.type, size: input.size })),
  }),
  nodeOperation({
    name: "node_key_rename",
    method: "POST",
    path: "/node/keys/{name}/rename",
    scope: "admin",
    help: "Rename a key",
    input: {
      name,
      to: { type: "string", required: true, describe: "Its new name" },
      replace: { type: "boolean", describe: "Replace a key of this name, which is then lost; default: false" },
    },
    response: "NodeKey",
    records: (input) => `rename the key ${input.name} to ${input.to}`,
    run: async ({ node, input }) => {
      const { id } = await node.key.rename(input.name, input.to, { force: input.replace });
      return plain({ name: input.to, id });
    },
  }),
  nodeOperation({
    name: "node_key_remove",
    method: "POST",
    path: "/node/keys/{name}/remove",
    scope: "admin",
    help: "Remove a key: publishing under its name then needs a copy of the key",
    input: { name },
    response: "NodeKey",
    records: (input) => `remove the key ${input.name}`,
    run: async ({ node, input }) => plain(await node.key.rm(input.name)),
  }),
  nodeOperation({
    name: "node_key_export",
    method: "POST",
    path: "/node/keys/{name}/export",
    scope: "admin",
    help: "The private key, in the form that can be imported: everybody who has it can publish under its name",
    input: { name },
    response: { type: "string", format: "binary" },
    isRaw: true,
    records: (input) => `export the key ${input.name}`,
    run: async ({ node, input }): Promise<ResponseFields> => {
      const headers = { ...attachment(`${input.name}.key`), cache_control: "no-store", content_type: BYTES };
      return { headers, body: await node.key.export(input.name) };
    },
  }),
  nodeOperation({
    name: "node_key_import",
    method: "POST",
    path: "/node/keys/{name}/import",
    scope: "admin",
    help: "Import an exported private key, under a name",
    input: { name },
    takes: "stream",
    response: "NodeKey",
    records: (input) => `import the key ${input.name}`,
    run: async ({ node, event, input }) => plain(await node.key.import(input.name, event.request.body_stream)),
  }),
];

/** Operations on names that keys publish. */
export const nameOperations = [
  nodeOperation({
    name: "node_publish",
    method: "POST",
    path: "/node/names/publish",
    scope: "admin",
    help: "Publish a path under the name of a key",
    input: {
      path: { type: "string", required: true, describe: "The path to publish: /ipfs/CID, or a CID" },
      key: { type: "string", describe: "Name of the key; default: self" },
      lifetime: { type: "string", describe: "How long the record is valid: 24h, 90m; default: a day" },
      ttl: { type: "string", describe: "How long others may cache the record: 1m" },
      allow_offline: {
        type: "boolean",
        describe: "Store the record here if it cannot be published to peers; default: false",
      },
    },
    response: "NamedValue",
    records: ({ path, key = SELF }) => `publish ${path} with the key ${key}`,
    run: ({ node, signal, input }): Promise<NamedValue> => {
      const { path, key = SELF, lifetime, ttl, allow_offline: allowOffline } = input;
      const options = { key, lifetime, ttl, allowOffline, signal: within(signal, PUBLISH_SECONDS) };
      return node.name.publish(contentPath(path), options);
    },
  }),
  nodeOperation({
    name: "node_resolve",
    method: "GET",
    path: "/node/names/resolve",
    scope: "read",
    help: "The current path of a name",
    input: {
      name: { type: "string", required: true, describe: "An IPNS name, a domain, or /ipns/ and one of these" },
      timeout: { type: "number", describe: `Seconds to look for it; default ${RESOLVE_SECONDS}` },
    },
    response: "NamedValue",
    run: async ({ node, signal, input: { name: requested, timeout = RESOLVE_SECONDS } }): Promise<NamedValue> => {
      const how = { stream: false, signal: within(signal, timeout) };
      const [value] = await Array.fromAsync(node.name.resolve(requested.replace(/^\/ipns\//, ""), how));
      if (value === undefined) throw new HttpError(404, `The name ${requested} does not resolve to a path`);
      return { name: requested, value };
    },
  }),
];

const plain = ({ name: called, id }: { name: string; id: string }): NodeKey => ({
  name: called,
  id,
  is_self: called === SELF,
});

async function shown(node: Deps["node"], key: { name: string; id: string }, signal: AbortSignal): Promise<NodeKey> {
  const options = { offline: true, stream: false, recursive: false, signal: within(signal, OWN_SECONDS) };
  try {
    const [value] = await Array.fromAsync(node.name.resolve(key.id, options));
    return { ...plain(key), ...(value === undefined ? {} : { value }) };
  } catch {
    // Most keys have not published anything.
    signal.throwIfAborted();
    return plain(key);
  }
}
