/** Operations on the keys of the node's configuration. */
import { HttpError } from "../../../core/index.ts";
import type { NodeConfig, NodeConfigKey, NodeConfigSet } from "../types.ts";
import { type Deps, nodeOperation } from "./operation.ts";

export const configOperations = [
  nodeOperation({
    name: "node_config",
    method: "GET",
    path: "/node/config",
    scope: "read",
    help: "Every key of the node's configuration: value, default, when a change takes effect, and the keys whose new values wait",
    response: "NodeConfig",
    run: ({ node }) => shown(node.config),
  }),
  nodeOperation({
    name: "node_config_set",
    method: "POST",
    path: "/node/config",
    scope: "admin",
    help: "Set a key of the node's configuration",
    input: {
      key: { type: "string", required: true, describe: "Its path, such as Datastore.StorageMax" },
      value: {
        type: "string",
        required: true,
        describe: 'The value as JSON text: "20GB" with its quotes, true, 90',
        maxLength: 262_144,
      },
    },
    response: "NodeConfigSet",
    records: ({ key }) => `set ${key} of the node`,
    run: async ({ node: { config }, input: { key, value } }): Promise<NodeConfigSet> => {
      if (!isJson(value)) throw new HttpError(400, "The value is not JSON: texts need double quotes");
      await config.set(key, value, { json: true });
      const waits = config.waiting().find((each) => each.key === key);
      const now = valueAt(await config.getAll(), key);
      return {
        key,
        ...(now === undefined ? {} : { value: JSON.stringify(now) }),
        is_in_force: waits === undefined,
        ...(waits?.reason === undefined ? {} : { reason: waits.reason }),
      };
    },
  }),
];

type Config = Deps["node"]["config"];

async function shown(config: Config): Promise<NodeConfig> {
  const document = await config.getAll();
  const keys = config.keys().map(({ key, type, help, init, applies, isSecret }): NodeConfigKey => {
    const value = isSecret ? undefined : valueAt(document, key);
    return {
      key,
      help,
      type,
      ...(value === undefined ? {} : { value: JSON.stringify(value) }),
      ...(init === undefined || isSecret ? {} : { default: JSON.stringify(init) }),
      applies,
      is_secret: isSecret,
    };
  });
  const waiting = config.waiting().map(({ key, reason }) => ({ key, ...(reason === undefined ? {} : { reason }) }));
  return { path: config.path, keys, waiting };
}

function valueAt(document: unknown, key: string): unknown {
  let value = document;
  for (const name of key.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
