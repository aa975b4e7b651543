import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  api_repo: {
    type: "path",
    describe: "Folder of the node's repo, made when it is not there; by default `repo` in the data folder.",
  },
  api_data: {
    type: "path",
    describe: "Folder in which the node keeps blocks and metadata; by default they are in the repo.",
  },
  api_profile: {
    type: "string",
    default: "local",
    describe:
      "Profile by which a repo is made, used once: `local` (loopback only, no bootstrap, no discovery), or one of the reference's such as `server`.",
  },
  api_offline: { type: "boolean", default: false, describe: "Run the node without any network." },
  api_pubsub: { type: "boolean", default: true, describe: "Switch on publish and subscribe." },
  api_namesys_pubsub: {
    type: "boolean",
    default: true,
    describe: "Publish and resolve names over publish and subscribe, too.",
  },
  api_gc: {
    type: "boolean",
    default: false,
    describe: "Collect garbage by itself when the repo nears `Datastore.StorageMax` of its config.",
  },
  api_tokens: {
    type: "any",
    example: { "a-long-random-text": { paths: ["/api/v0/add", "/api/v0/pin"] } },
    describe:
      "Tokens (bearer, or password of basic) that let callers in from other machines and through proxies: a list, or an object from token to the paths that it opens.",
  },
  api_hosts: {
    type: "strings",
    default: [],
    describe: "Host names beside localhost and loopback addresses under which local callers need no token.",
  },
  api_pubsub_wire: {
    type: "enum",
    values: ["plain", "multibase"],
    default: "plain",
    describe: "Form of topics and messages in the API: `plain` as 0.9, `multibase` as later clients speak.",
  },
  api_config_edit: {
    type: "boolean",
    default: false,
    describe: "Allow `config/edit` to start the editor of the host's own terminal.",
  },
} as const satisfies OptionDeclarations;
