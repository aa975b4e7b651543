import type { OptionDeclarations } from "../../../core/types.ts";

export const options = {
  node_repo: {
    type: "path",
    describe: "Folder of the node's repo, made when it is not there; by default `repo` in the data folder.",
  },
  node_data: {
    type: "path",
    describe: "Folder in which the node keeps blocks and metadata; by default they are in the repo.",
  },
  node_profile: {
    type: "string",
    default: "local",
    describe:
      "Profile by which a repo is made, used once: `local` (loopback only, no bootstrap, no discovery), or one of the reference's such as `server`.",
  },
  node_offline: { type: "boolean", default: false, describe: "Run the node without any network." },
  node_pubsub: {
    type: "boolean",
    describe:
      "Switch publish and subscribe on or off; by default `Pubsub.Enabled` of the repo's config, and on without it.",
  },
  node_namesys_pubsub: {
    type: "boolean",
    describe:
      "Publish and resolve names over publish and subscribe, too; by default `Ipns.UsePubsub` of the repo's config, and on without it.",
  },
  node_gc: {
    type: "boolean",
    default: false,
    describe: "Collect garbage by itself when the repo nears `Datastore.StorageMax` of its config.",
  },
} as const satisfies OptionDeclarations;
