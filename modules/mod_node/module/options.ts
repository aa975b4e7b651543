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
  node_store: {
    type: "object",
    applies: "start",
    per_host: false,
    example: { s3: "s3://bucket/prefix", sql: "postgres://modhost@db.example.net/modhost" },
    describe:
      "Keep blocks in an S3-compatible object store and pins, files and names in PostgreSQL, which several hosts share (see the guide on several hosts). Its fields are listed below the options of the node. Default: on this machine.",
    fields: {
      s3: { type: "string", describe: "`s3://BUCKET/PREFIX`: the bucket for the blocks, and a prefix of their keys." },
      sql: {
        type: "string",
        secret: true,
        describe:
          "`postgres://USER@HOST/DATABASE?schema=NAME`: the database for pins, files and names. It may name several hosts. The connection is encrypted only with `sslmode`: see the guide on several hosts.",
      },
      endpoint: {
        type: "url",
        required: false,
        describe: "URL of an S3-compatible store. Default: the store of Amazon in the region.",
      },
      region: {
        type: "string",
        required: false,
        describe: "Region of the bucket. Default: `AWS_REGION` of the environment, else `us-east-1`.",
      },
      path_style: {
        type: "boolean",
        required: false,
        describe:
          "Whether the bucket is in the path of a URL. Default: true with an `endpoint` or a bucket with a dot in its name, else false.",
      },
      credentials: {
        type: "path",
        required: false,
        must_exist: true,
        describe:
          "File with access keys, in the format of `~/.aws/credentials`. Default: `AWS_ACCESS_KEY_ID` and related variables of the environment.",
      },
      profile: {
        type: "string",
        required: false,
        describe: "Section of the credentials file. Default: `AWS_PROFILE`, or `default`.",
      },
      sql_password: {
        type: "path",
        required: false,
        must_exist: true,
        describe: "File with the password of the database. Default: in the URL, or `PGPASSWORD`.",
      },
      cache: {
        type: "size",
        default: "10GiB",
        min: 16 * 2 ** 20,
        describe: "Maximum size of the cache of objects on disk.",
      },
      cache_path: {
        type: "path",
        required: false,
        describe: "Folder for that cache and for the index. It may be deleted at any time. Default: in the repo.",
      },
      segment: {
        type: "size",
        default: "64MiB",
        min: 64 * 2 ** 10,
        max: 2 ** 30,
        describe: "Maximum size of an object. A full object is completed, and another one begun.",
      },
      grace: {
        type: "period",
        default: "1h",
        describe:
          "How long an object stays after the last reference to it is gone. It must be longer than the longest response takes.",
      },
      keys_secret: {
        type: "path",
        required: false,
        must_exist: true,
        describe:
          "File with a secret. The hosts share their keys for names, encrypted with this secret. Default: each host has its own keys.",
      },
    },
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
      "What to do if there are blocks, but the metadata with pins, files and names is missing or empty: `refuse` to start, `restore` the copy that is stored next to it, or start with `none`. Set it for one start only.",
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
  node_agent: {
    type: "string",
    example: "kubo/0.43.0",
    applies: "start",
    describe:
      "Name of the node, as NAME/VERSION, for other peers and in the responses of `id`. Some front ends show certain pages only for programs with a name that they know. Default: `modhost` and its version.",
  },
  node_gc: {
    type: "boolean",
    default: false,
    describe: "Collect garbage automatically when the repo approaches `Datastore.StorageMax` in its config.",
  },
} as const satisfies OptionDeclarations;
