import type { OptionDeclarations } from "../../../core/types.ts";

export const options = {
  node_repo: {
    type: "path",
    applies: "start",
    describe: "Folder of the node's repo, created if it does not exist. Default: `repo` in the data folder.",
  },
  node_data: {
    type: "path",
    applies: "start",
    describe: "Folder for the node's blocks and metadata. Default: in the repo.",
  },
  node_profile: {
    type: "string",
    default: "local",
    applies: "start",
    describe:
      "Profile of a newly created repo: `local` (loopback only, no bootstrap peers, no discovery), or a profile of go-ipfs such as `server`.",
  },
  node_lost_metadata: {
    type: "enum",
    values: ["refuse", "restore", "none"],
    default: "refuse",
    applies: "start",
    describe:
      "What to do when there are blocks, and the metadata with pins, files and names is missing or empty: `refuse` to start, `restore` the copy that is kept beside it, or start with `none`. Set it for one start.",
  },
  node_offline: { type: "boolean", default: false, applies: "start", describe: "Run the node without any network." },
  node_pubsub: {
    type: "boolean",
    applies: "start",
    describe: "Turn pubsub on or off. Default: `Pubsub.Enabled` in the repo's config; if that is not set, it is on.",
  },
  node_namesys_pubsub: {
    type: "boolean",
    applies: "start",
    describe:
      "Also publish and resolve names over pubsub. Default: `Ipns.UsePubsub` in the repo's config; if that is not set, it is on.",
  },
  node_gc: {
    type: "boolean",
    default: false,
    describe: "Collect garbage automatically when the repo approaches `Datastore.StorageMax` in its config.",
  },
} as const satisfies OptionDeclarations;
